//! The layer alone, without the rest of the server.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::ready;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Mutex;

use http::{HeaderValue, Request, Response, request::Parts};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit, service_fn};

use crate::layer::{Answer, GateLayer, OnFailure};

#[path = "../src/layer.rs"]
pub mod layer;

async fn hello<A, B: Default>(_: Request<A>) -> Result<Response<B>, Infallible> {
    Ok(Response::new(B::default()))
}

fn status(status: u16) -> Response<String> {
    Response::builder().status(status).body(String::new()).unwrap()
}

/// The key in a header. A request without it passes, and a malformed one does not.
fn key_of(request: &Parts) -> ControlFlow<Answer<String>, String> {
    match request.headers.get("key").map(HeaderValue::to_str) {
        None => Break(Answer::Pass),
        Some(Ok(key)) => Continue(key.to_owned()),
        Some(Err(_)) => Break(Answer::Refuse(status(400))),
    }
}

fn with_key<A: Default>(key: &[u8]) -> Request<A> {
    Request::builder().header("key", key).body(A::default()).unwrap()
}

#[tokio::test]
async fn a_revoked_token_is_refused_with_401_and_the_service_never_sees_it() {
    let service = service_fn(|request: Request<String>| {
        assert!(request.headers().get("key").is_none_or(|key| key == "good"));
        hello(request)
    });
    let ask = |token| {
        let refusal = Response::builder().status(401).header("www-authenticate", "Bearer").body(String::new()).unwrap();
        ready(if token == "revoked" { Answer::Refuse(refusal) } else { Answer::Pass })
    };
    let service = GateLayer::new(key_of, ask, OnFailure::Refuse).layer(service);
    let refused = service.clone().oneshot(with_key(b"revoked")).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers()["www-authenticate"].as_bytes()), (401, &b"Bearer"[..]));
    assert_eq!(service.clone().oneshot(with_key(b"\xff")).await.unwrap().status(), 400);
    assert_eq!(service.clone().oneshot(with_key(b"good")).await.unwrap().status(), 200);
    assert_eq!(service.oneshot(Request::default()).await.unwrap().status(), 200);
}

/// With an `ask` that waits.
#[tokio::test]
async fn a_repeated_request_is_refused_with_409() {
    let seen = Mutex::new(HashSet::new());
    let ask = |id| {
        let is_first = seen.lock().unwrap().insert(id);
        async move {
            tokio::task::yield_now().await;
            if is_first { Answer::Pass } else { Answer::Refuse(status(409)) }
        }
    };
    let service = GateLayer::new(key_of, ask, OnFailure::Refuse).layer(service_fn(hello::<String, String>));
    for (id, expected) in [(b"1", 200), (b"1", 409), (b"2", 200), (b"1", 409)] {
        assert_eq!(service.clone().oneshot(with_key(id)).await.unwrap().status(), expected);
    }
}

#[tokio::test]
async fn if_nobody_can_tell_it_fails_open_or_closed_by_choice() {
    for (on_failure, expected) in [(OnFailure::Pass, 200), (OnFailure::Refuse, 503)] {
        let ask = |_| ready(Answer::Failed(status(503)));
        let service = GateLayer::new(key_of, ask, on_failure).layer(service_fn(hello::<String, String>));
        assert_eq!(service.oneshot(with_key(b"key")).await.unwrap().status(), expected);
    }
}

/// Clients of gRPC read the error from the header `grpc-status`: 16 is "unauthenticated".
#[tokio::test]
async fn it_takes_the_bodies_and_errors_of_tonic() {
    use tonic::{Status, body::Body};
    let key_of = |parts: &Parts| if parts.headers.contains_key("key") { Continue(()) } else { Break(Answer::Pass) };
    let ask = |()| ready(Answer::Refuse(Status::unauthenticated("the token is revoked").into_http()));
    let service = GateLayer::new(key_of, ask, OnFailure::Refuse).layer(service_fn(hello::<Body, Body>));
    assert_eq!(service.clone().oneshot(with_key(b"revoked")).await.unwrap().headers()["grpc-status"], "16");
    assert!(!service.oneshot(Request::default()).await.unwrap().headers().contains_key("grpc-status"));
}

/// A service with a limit panics if a request comes to a clone that was not polled.
#[tokio::test]
async fn the_service_that_was_ready_gets_the_request() {
    let service = ConcurrencyLimit::new(service_fn(hello::<String, String>), 1);
    let mut service = GateLayer::new(key_of, |_| ready(Answer::Pass), OnFailure::Refuse).layer(service);
    for _ in 0..3 {
        assert_eq!(service.ready().await.unwrap().call(with_key(b"key")).await.unwrap().status(), 200);
    }
}
