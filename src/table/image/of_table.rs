//! CONCURRENT: images of a table that does not grow.

use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::plan::sizing::LoadLimit;
#[cfg(feature = "snapshot")]
use crate::sync::AtomicU64;
use crate::table::entries::Entries;
use crate::table::expiring::clock::ClockState;
use crate::table::image::copy_on_write::{CopiedWords, RunningSaves, SaveNumber};
use crate::table::image::read::ImageSource;
use crate::table::table::Table;
use crate::word::bucket::Bucket;
use crate::word::digest;
use crate::word::geometry::Item;
use crate::word::layout::{Layout, Shape};

impl<E: Entries> ImageSource for Table<E> {
    fn running_saves(&self) -> &RunningSaves {
        self.running_saves()
    }

    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory> {
        let copied = CopiedWords::new(self.words.len())?;
        self.under_all_locks(|all| {
            let clock_state = self.entries.clock_state_for_save(all);
            Ok(self.running_saves().begin(all, copied, clock_state))
        })
    }

    fn load(&self, bucket: usize) -> Bucket {
        self.load(bucket)
    }

    #[cfg(feature = "snapshot")]
    fn word(&self, bucket: usize) -> &AtomicU64 {
        &self.words[bucket]
    }

    fn shape_of(&self, _: usize) -> Shape {
        self.layout.shape()
    }

    #[cfg(feature = "snapshot")]
    fn limit(&self) -> LoadLimit {
        self.limit
    }

    fn of_classes(&self) -> [u64; 5] {
        self.geometry.of_classes(self.layout.shape())
    }

    fn copies_in(&self, _: usize, _: usize, words: &[u64]) -> u64 {
        words.iter().map(|&word| Bucket(word).occupied(self.layout) as u64).sum()
    }

    fn digest_of(&self, _: usize, clock_state: Option<ClockState>, start: usize, words: &[u64]) -> u64 {
        let mut sum = 0u64;
        for (bucket, &word) in (start..).zip(words) {
            for entry in Bucket(word).entries(self.layout) {
                if let Some(payload) = self.entries.in_digest(clock_state, self.layout.payload_of(entry)) {
                    let Item { first, second, .. } = self.geometry.item_in(self.layout, bucket, entry);
                    let fingerprint = self.layout.fingerprint_of(entry).0;
                    sum = sum.wrapping_add(digest::of_copy(fingerprint, first.min(second) as u64, payload));
                }
            }
        }
        sum
    }
}
