//! A node joins its fleet: it reads all tokens at one revision.

use std::sync::Arc;

use crate::etcd::messages::{RangeResponse, TxnRequest, TxnResponse};
use crate::etcd::{Fault, range_of, response_range, revision, txn};
use crate::filter::Known;
use crate::link::{End, Link};
use crate::shared::{Head, Memory, Phase, Shared, count, lock};

/// How many tokens are read at once.
const PAGE: i64 = 10_000;

/// Reads all tokens at one revision.
pub(crate) async fn join(link: &Link, capacity: &mut usize) -> Result<Arc<Known>, End> {
    let (shared, settings) = (Arc::clone(&link.shared), &link.shared.settings);
    let memory = lock(&shared.memory).clone();
    let tokens = shared.names.tokens();
    // The rest of the pages may take any time, but the first question is the one that counts.
    let ask = async |memory: Option<&Memory>| {
        let mut question = link.question(memory);
        question.push(range_of(&tokens, tokens.clone(), PAGE, 0).into());
        page_of(link, txn(vec![], question, vec![])).await
    };
    let (answer, memory) = match (ask(memory.as_ref()).await, memory) {
        // What the node knew is too long ago to be compared. If the cluster had lost something, the other nodes would
        // have said so in it.
        (Err(Fault::Compacted), Some(_)) => (ask(None).await?, None),
        (Err(fault), Some(memory)) => return Err(link.unknown_revision(fault, &memory)),
        (answer, memory) => (answer?, memory),
    };
    let history = link.compare(&answer, memory.as_ref())?;
    let mut page = response_range(&answer, answer.responses.len() - 1);
    let at = revision(&answer);
    *capacity = (*capacity).max(usize::try_from(page.count).unwrap_or(usize::MAX));
    let known = Known::new(settings, &shared.clock, *capacity, at)
        .map_err(|error| End::Fault(format!("there is no memory for the filter: {error}")))?;
    if page.more && takes!(settings, Pages) {
        // Etcd counts what is left of a range for each page of it. So the identifiers, which are even, are read by their
        // first digits.
        let digits = (page.count / PAGE).max(1).ilog(16) as usize + 1;
        for nth in 0..16_u64.pow(digits as u32) {
            let part = [&tokens[..], format!("{nth:0digits$x}").as_bytes()].concat();
            let mut from = part.clone();
            loop {
                let question = txn(vec![], vec![range_of(&part, from, PAGE, at).into()], vec![]);
                page = response_range(&page_of(link, question).await?, 0);
                fill(&shared, &known, &page, capacity)?;
                let Some(last) = page.kvs.last().filter(|_| page.more) else { break };
                from = [&last.key[..], &[0]].concat();
            }
        }
    } else {
        fill(&shared, &known, &page, capacity)?;
    }
    let memory = Memory { revision: at, head: Head::of(&response_range(&answer, 0)), accepted: history.accepted };
    *lock(&shared.memory) = Some(memory);
    let known = Arc::new(known);
    shared.known.store(Some(Arc::clone(&known)));
    // Whoever waits for a change that came before this revision would wait in vain.
    lock(&shared.pending).clear();
    count(&shared.tallies.joins);
    shared.enter(Phase::Following, format!("it has joined at revision {at}"));
    Ok(known)
}

/// Adds the tokens of a page.
fn fill(shared: &Shared, known: &Known, page: &RangeResponse, capacity: &mut usize) -> Result<(), End> {
    for kv in &page.kvs {
        let Some(id) = shared.names.id(&kv.key) else {
            count(&shared.tallies.foreign);
            continue;
        };
        let end = shared.secret.end(id, &kv.value).unwrap_or_else(|| {
            count(&shared.tallies.foreign);
            tracing::error!(%id, "nobody of the fleet has written this record; requests of its token get 503");
            // So that the filter says "perhaps", for as long as it can.
            u64::MAX
        });
        if known.put(&shared.settings, shared.secret.hash(id), end, None).is_err() {
            *capacity = capacity.saturating_mul(2);
            return Err(End::Join("the filter was too small".into()));
        }
    }
    Ok(())
}

/// A page of tokens may take longer than a word.
async fn page_of(link: &Link, question: TxnRequest) -> Result<TxnResponse, Fault> {
    let limit = 10 * link.shared.settings.one_try();
    link.shared.client.call(&link.channel, &link.url, "/etcdserverpb.KV/Txn", question, limit).await
}
