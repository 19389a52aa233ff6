//! PURE: checks of words that come from a snapshot.

use crate::word::bucket::Bucket;
use crate::word::layout::{Layout, RuntimeLayout, Shape, WithPayload, by_encoding};

/// How many copies words of this shape hold, or the place of the first that no table can hold. `None` if there is no
/// memory for the layout's decode table.
pub(crate) fn copies_in(shape: Shape, words: &[u64]) -> Option<Result<u64, usize>> {
    Some(match shape.payload_bits {
        0 => by_encoding!(RuntimeLayout::try_of(shape)?, layout => copies_in_words(layout, words)),
        _ => by_encoding!(WithPayload::try_of(shape)?, layout => copies_in_words(layout, words)),
    })
}

/// The first payload for which `is_it` says so, in words of this shape, and the place of its word. `None` if there is no
/// memory for the layout's decode table.
pub(crate) fn first_payload(shape: Shape, words: &[u64], is_it: &dyn Fn(u16) -> bool) -> Option<Option<(usize, u16)>> {
    Some(by_encoding!(WithPayload::try_of(shape)?, layout => first_payload_in_words(layout, words, is_it)))
}

fn first_payload_in_words<L: Layout>(layout: L, words: &[u64], is_it: &dyn Fn(u16) -> bool) -> Option<(usize, u16)> {
    (0..).zip(words).find_map(|(nth, &word)| {
        let lanes = Bucket(word).lanes_with(layout, is_it);
        (lanes != 0).then(|| (nth, Bucket(word).payload_in(layout, lanes)))
    })
}

fn copies_in_words<L: Layout>(layout: L, words: &[u64]) -> Result<u64, usize> {
    let mut copies = 0;
    for (nth, &word) in words.iter().enumerate() {
        let word = Bucket(word);
        if !word.is_valid(layout) {
            return Err(nth);
        }
        copies += word.occupied(layout) as u64;
    }
    Ok(copies)
}
