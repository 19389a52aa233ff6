//! The tasks that ask the record. They group the questions of concurrent requests into one question to the engine: a
//! script costs more than a plain command, and so all of them share its cost.

use std::sync::Arc;

use tokio::sync::{Mutex, mpsc, oneshot};

use super::Core;
use crate::change::TokenId;

/// The most tokens in one question.
const AT_ONCE: usize = 200;

/// How many tokens may wait.
const WAITING: usize = 10_000;

type Answer = Result<Option<u64>, String>;

/// The entry for questions.
pub(super) struct Inquiry(mpsc::Sender<Question>);

pub(super) struct Question {
    token: TokenId,
    answer: oneshot::Sender<Answer>,
}

pub(super) fn new() -> (Inquiry, mpsc::Receiver<Question>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Inquiry(sender), receiver)
}

impl Inquiry {
    pub(super) async fn ask(&self, token: TokenId) -> Answer {
        let (answer, answered) = oneshot::channel();
        let ending = |()| "the node ends".to_owned();
        self.0.send(Question { token, answer }).await.map_err(|_| ending(()))?;
        answered.await.unwrap_or_else(|_| Err(ending(())))
    }
}

pub(super) async fn run(node: Arc<Core>, questions: mpsc::Receiver<Question>) {
    let questions = Mutex::new(questions);
    // One after the other takes what is there, and asks.
    let asking = || async {
        let mut batch = Vec::with_capacity(AT_ONCE);
        while questions.lock().await.recv_many(&mut batch, AT_ONCE).await > 0 {
            let tokens: Vec<_> = batch.iter().map(|question| question.token).collect();
            let answers = match node.known_place() {
                Some(known) => node.engine.revoked_until(known, &tokens).await.map_err(|error| error.to_string()),
                None => Err("the node has not reached the engine since it was started".into()),
            };
            for (place, Question { answer, .. }) in batch.drain(..).enumerate() {
                // It does not matter if the client is gone.
                let _ = answer.send(answers.as_ref().map(|answers| answers[place]).map_err(String::clone));
            }
        }
    };
    // Two questions are on their way at a time. While they are, the next ones gather.
    tokio::join!(asking(), asking());
}
