//! A node joins its fleet: it reads all tokens at one revision.

use std::sync::Arc;

use crate::etcd::Fault;
use crate::etcd::build::{questions, range_at, range_of, revision};
use crate::etcd::messages::{RangeResponse, RequestOp, TxnResponse};
use crate::filter::Known;
use crate::link::{End, Link};
use crate::lock;
use crate::shared::{Head, Memory, Shared, count};
use crate::state::State;

/// How many tokens are read at once.
const PAGE: i64 = 10_000;

/// Reads all tokens at one revision, into a filter for this many at least.
pub(crate) async fn join(link: &Link, capacity: usize) -> Result<Arc<Known>, End> {
    let shared = Arc::clone(&link.shared);
    let memory = lock(&shared.memory).clone();
    let tokens = shared.names.tokens();
    // The rest of the pages may take any time, but the first question is the one that counts.
    let ask = async |memory: Option<&Memory>| {
        let mut question = link.question(memory);
        question.push(range_of(&tokens, tokens.clone(), PAGE, 0));
        page_of(link, question).await
    };
    let (answer, memory) = match (ask(memory.as_ref()).await, memory) {
        // What the node knew is too long ago to be compared. If the cluster had lost something, the other nodes would
        // have said so in it.
        (Err(Fault::Compacted), Some(_)) => (ask(None).await?, None),
        (Err(fault), Some(memory)) => return Err(link.unknown_revision(fault, &memory)),
        (answer, memory) => (answer?, memory),
    };
    let history = link.compare(&answer, memory.as_ref())?;
    let mut page = range_at(&answer, answer.responses.len() - 1);
    let at = revision(&answer);
    let capacity = capacity.max(usize::try_from(page.count).unwrap_or(usize::MAX));
    let known = Known::new(&shared.settings, &shared.clock, capacity, at)
        .map_err(|error| End::Fault(format!("there is no memory for the filter: {error}")))?;
    if page.more {
        // Etcd counts what is left of a range for each page of it. So the identifiers, which are even, are read by their
        // first digits.
        let digits = (page.count / PAGE).max(1).ilog(16) as usize + 1;
        for nth in 0..16_u64.pow(digits as u32) {
            let part = [&tokens[..], format!("{nth:0digits$x}").as_bytes()].concat();
            let mut from = part.clone();
            loop {
                page = range_at(&page_of(link, vec![range_of(&part, from, PAGE, at)]).await?, 0);
                fill(&shared, &known, &page)?;
                let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
                from = [&last.key[..], &[0]].concat();
            }
        }
    } else {
        fill(&shared, &known, &page)?;
    }
    *lock(&shared.memory) = Some(Memory { revision: at, head: Head::at(&answer, 0), accepted: history.accepted });
    let known = Arc::new(known);
    shared.known.store(Some(Arc::clone(&known)));
    // Whoever waits for a change that came before this revision would wait in vain.
    lock(&shared.pending).clear();
    count(&shared.tallies.joins);
    shared.enter(State::Ready, format!("it has joined at revision {at}"));
    Ok(known)
}

/// Adds the tokens of a page.
fn fill(shared: &Shared, known: &Known, page: &RangeResponse) -> Result<(), End> {
    for kv in &page.kvs {
        let Some(id) = shared.names.id(&kv.key) else {
            count(&shared.tallies.foreign);
            continue;
        };
        let end = shared.secret.end(id, &kv.value).unwrap_or_else(|| {
            shared.damaged(id);
            // So that the filter says "perhaps", for as long as it can.
            u64::MAX
        });
        if end == 0 {
            continue;
        }
        known.put(shared.secret.hash(id), end, None).map_err(|_| End::NoRoom)?;
    }
    Ok(())
}

/// A page of tokens may take longer than a word.
async fn page_of(link: &Link, question: Vec<RequestOp>) -> Result<TxnResponse, Fault> {
    let limit = 10 * link.shared.settings.one_try();
    link.shared.client.txn_over(&link.connection, questions(question), limit).await
}
