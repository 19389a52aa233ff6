//! A tower layer that asks about a key of each request, such as its token or its identifier, before the request may
//! pass. Copy this file into a server of axum, tonic or any other tower services: it needs only `http` and `tower`.

use std::future::Future;
use std::ops::ControlFlow;
use std::task::{Context, Poll};

use http::{Request, Response, request::Parts};
use tower::{Layer, Service};

/// What is to be done with a request. In axum, `.into_response()` makes a response; in tonic, `Status::into_http`.
#[derive(Debug)]
pub enum Answer<B> {
    /// The request goes on to the service.
    Pass,
    /// The client gets this response, such as 401 or 409.
    Refuse(Response<B>),
    /// Nobody can tell. [`OnFailure`] decides whether the request passes, or gets this response, such as 503.
    Failed(Response<B>),
}

/// What is to be done with a request if asking has [failed](Answer::Failed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Fail open: the request passes.
    Pass,
    /// Fail closed: the request is refused.
    Refuse,
}

/// The layer. It puts a [`Gate`] in front of a service.
#[derive(Clone, Debug)]
pub struct GateLayer<Extract, Ask> {
    extract: Extract,
    ask: Ask,
    on_failure: OnFailure,
}

impl<Extract, Ask> GateLayer<Extract, Ask> {
    /// `extract` continues with the key that it finds in the head of a request, and `ask` gives the answer for it.
    /// If there is no key, or a malformed one, `extract` breaks with the answer: to pass, or to refuse the request.
    pub fn new<K, F, B>(extract: Extract, ask: Ask, on_failure: OnFailure) -> Self
    where
        Extract: Fn(&Parts) -> ControlFlow<Answer<B>, K>,
        Ask: Fn(K) -> F,
        F: Future<Output = Answer<B>>,
    {
        Self { extract, ask, on_failure }
    }
}

impl<S, Extract: Clone, Ask: Clone> Layer<S> for GateLayer<Extract, Ask> {
    type Service = Gate<S, Extract, Ask>;
    fn layer(&self, inner: S) -> Self::Service {
        Gate { inner, layer: self.clone() }
    }
}

/// The service that passes on the requests that may pass.
#[derive(Clone, Debug)]
pub struct Gate<S, Extract, Ask> {
    inner: S,
    layer: GateLayer<Extract, Ask>,
}

impl<S, Extract, Ask, K, F, A, B> Service<Request<A>> for Gate<S, Extract, Ask>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    Extract: Fn(&Parts) -> ControlFlow<Answer<B>, K>,
    Ask: Fn(K) -> F,
    F: Future<Output = Answer<B>> + Send + 'static,
    A: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }
    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let asked = (self.layer.extract)(&parts).map_continue(&self.layer.ask);
        let on_failure = self.layer.on_failure;
        // Only the service that was polled is ready. So it goes with the request, and its clone stays here.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            let answer = match asked {
                ControlFlow::Continue(asked) => asked.await,
                ControlFlow::Break(answer) => answer,
            };
            match answer {
                Answer::Refuse(response) => Ok(response),
                Answer::Failed(response) if on_failure == OnFailure::Refuse => Ok(response),
                Answer::Pass | Answer::Failed(_) => inner.call(Request::from_parts(parts, body)).await,
            }
        })
    }
}
