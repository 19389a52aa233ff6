//! PURE: growing tables in the bytes of a snapshot, at the size that they had.

use crate::filter::view::words::{SnapshotWords, ViewTable};
use crate::lookup::batch::Hashes;
use crate::lookup::growing::GrowingLookup;
use crate::lookup::source::{BucketSource as _, GrowingSource};
use crate::word::bucket::Bucket;
use crate::word::classes::{Classes, State, both};
use crate::word::geometry::mixed;
use crate::word::layout::Encoding;
use crate::word::layouts::Layouts;

/// The table of a growable filter but for its words: where a key would be.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Clone, Copy, Debug)]
pub struct GrowingView {
    classes: Classes,
    state: State,
}

impl GrowingView {
    /// A table of this many buckets, or `None` if there is no memory for a decode table.
    pub(super) fn new(classes: Classes, encoding: Option<Encoding>, buckets: usize) -> Option<Self> {
        let state = State::of_buckets(buckets);
        let layouts = Layouts::new(classes, encoding, state.depths())?;
        Some(Self { classes, state: state.with_rows(layouts.rows(state.level(), state.split() > 0)) })
    }
}

impl ViewTable for GrowingView {
    fn contains(&self, words: SnapshotWords<'_>, hash: u64) -> bool {
        GrowingLookup(GrowingWords { table: *self, words }).contains(mixed(hash))
    }

    fn contains_batch(&self, words: SnapshotWords<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mixed = &mut |block: &mut _| {
            let len = hashes(block);
            block.iter_mut().for_each(|hash| *hash = mixed(*hash));
            len
        };
        GrowingLookup(GrowingWords { table: *self, words }).contains_all(mixed, answers);
    }
}

/// A table with its words.
#[derive(Clone, Copy)]
struct GrowingWords<'a> {
    table: GrowingView,
    words: SnapshotWords<'a>,
}

/// There are no versions, and one epoch, because nothing changes.
impl GrowingSource for GrowingWords<'_> {
    type Version = ();

    #[inline(always)]
    fn classes(self) -> Classes {
        self.table.classes
    }

    #[inline(always)]
    fn epoch(self) -> u64 {
        0
    }

    #[inline(always)]
    fn state(self) -> State {
        self.table.state
    }

    #[inline(always)]
    fn is_still(self, _: u64) -> bool {
        true
    }

    #[inline(always)]
    fn stripe(self, _: u32) -> u32 {
        0
    }

    #[inline(always)]
    fn version(self, _: u32) {}

    #[inline(always)]
    fn changes_since(self, (): ()) -> u64 {
        0
    }

    #[inline(always)]
    fn load_pair(self, numbers: [u32; 2]) -> Option<[Bucket; 2]> {
        Some(both(numbers, |number| self.words.load(number as usize)))
    }

    #[inline(always)]
    fn prefetch(self, number: u32) {
        self.words.prefetch(number as usize);
    }

    fn contains_slow(self, _: u64) -> bool {
        unreachable!("no thread changes a snapshot")
    }
}
