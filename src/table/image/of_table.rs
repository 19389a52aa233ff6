//! CONCURRENT: images of a table that does not grow.

use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::plan::sizing::LoadLimit;
#[cfg(feature = "snapshot")]
use crate::sync::AtomicU64;
use crate::table::counters::Counters;
use crate::table::expiring::clock::Reading;
use crate::table::image::copy_on_write::{RunningSaves, SaveNumber, SetAside};
use crate::table::image::read::Imaged;
use crate::table::table::Table;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::digest;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout, Shape};

impl<L: Layout> Imaged for Table<L> {
    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn running_saves(&self) -> &RunningSaves {
        self.running_saves()
    }

    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory> {
        let set_aside = SetAside::new(self.words.len())?;
        self.under_all_locks(|all| {
            let reading = self.clock().map(|clock| clock.read_for_save(all));
            self.running_saves().begin(all, set_aside.at(reading))
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
        self.buckets.of_classes(self.layout.shape())
    }

    fn copies_in(&self, _: usize, _: usize, words: &[u64]) -> u64 {
        words.iter().map(|&word| self.layout.occupied(Bucket(word)) as u64).sum()
    }

    fn digest_of(&self, _: usize, reading: Option<Reading>, start: usize, words: &[u64]) -> u64 {
        let Some(clock) = self.clock() else {
            return self.sum_of_copies(start, words, |entry| Some(self.layout.payload_of(entry).into()));
        };
        let Some(reading @ Reading { now: Some(now), moment, .. }) = reading else {
            return 0; // without a tick there are no entries
        };
        // In the caller's ticks: the places on the ring differ from filter to filter. Modulo 2⁶⁴, because an end may be
        // beyond the largest tick.
        let end = |place| now.wrapping_add(reading.ticks_until(clock.ring, place));
        self.sum_of_copies(start, words, |entry| {
            let place = self.layout.payload_of(entry);
            clock.ring.is_live(moment, place).then(|| end(place))
        })
    }
}

impl<L: Layout> Table<L> {
    /// The sum of the digests of all copies for which `payload` returns what their payload means.
    #[inline(always)]
    fn sum_of_copies(&self, start: usize, words: &[u64], payload: impl Fn(Entry) -> Option<u64>) -> u64 {
        let mut sum = 0u64;
        for (bucket, &word) in (start..).zip(words) {
            for entry in self.layout.entries(Bucket(word)) {
                if let Some(payload) = payload(entry) {
                    let Item { first, second, .. } = self.buckets.item_in(self.layout, bucket, entry);
                    let fingerprint = self.layout.fingerprint_of(entry).0;
                    sum = sum.wrapping_add(digest::of_copy(fingerprint, first.min(second) as u64, payload));
                }
            }
        }
        sum
    }
}
