//! Reads several segments as one.

use std::iter::Peekable;
use std::sync::Arc;

use lsm_tree::Slice;

use crate::entry::Entry;
use crate::error::Error;
use crate::segment::{Pair, Segment};

type Source = Peekable<Box<dyn Iterator<Item = Result<Pair, Error>>>>;

/// The keys of several segments in order. Each key comes once, with its newest entry.
pub(crate) struct Merge {
    sources: Vec<Source>,
    inputs: Vec<Arc<Segment>>,
    /// No segment is older than these, so a deletion has nothing to hide.
    oldest: bool,
}

/// A key of a merge.
pub(crate) struct Merged {
    pub(crate) key: Slice,
    /// The bytes of the newest entry.
    pub(crate) entry: Slice,
    /// Whether the output has it. The output leaves out a deletion that hides nothing.
    pub(crate) kept: bool,
    /// The slot of the newest input that has the key.
    pub(crate) slot: u16,
}

impl Merge {
    /// A merge of `inputs`, given from the newest to the oldest.
    pub(crate) fn new(inputs: &[Arc<Segment>], oldest: bool) -> Self {
        let sources = inputs.iter().map(|segment| {
            let pairs: Box<dyn Iterator<Item = _>> = Box::new(segment.pairs());
            pairs.peekable()
        });
        Self { sources: sources.collect(), inputs: inputs.to_vec(), oldest }
    }
}

impl Iterator for Merge {
    type Item = Result<Merged, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut least: Option<Slice> = None;
        for source in &mut self.sources {
            match source.peek() {
                Some(Ok((key, _))) if least.as_ref().is_none_or(|least| key < least) => least = Some(key.clone()),
                Some(Err(_)) => return source.next().map(|error| error.map(|_| unreachable!("it was an error"))),
                _ => {}
            }
        }
        let key = least?;
        let (mut newest, mut kept) = (None, true);
        for (source, segment) in self.sources.iter_mut().zip(&self.inputs) {
            let Some(Ok((_, bytes))) = source.next_if(|pair| pair.as_ref().is_ok_and(|(other, _)| *other == key))
            else {
                continue;
            };
            if newest.is_none() {
                match segment.entry(&bytes) {
                    Ok(entry) => kept = !(self.oldest && entry == Entry::Deleted),
                    Err(error) => return Some(Err(error)),
                }
                newest = Some((bytes, segment.slot()));
            }
        }
        let (entry, slot) = newest?;
        Some(Ok(Merged { key, entry, kept, slot }))
    }
}
