//! CONCURRENT: the sum of the digests of all copies in the image of a table. `word/digest.rs` has the arithmetic.

use crate::error::memory::OutOfMemory;

use crate::table::expiring::clock::Reading;
use crate::table::image::read::each_chunk;
use crate::table::image::save::SaveNumber;
use crate::table::table::Table;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::digest;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};

impl<L: Layout> Table<L> {
    /// The sum over the copies that were in at the moment of the save. Where there is a clock, only copies that were
    /// live at that moment count.
    pub(in crate::table) fn digest(&self, save: SaveNumber) -> Result<u64, OutOfMemory> {
        let Some(clock) = self.clock() else {
            return self.sum_of_copies(save, |entry| Some(self.layout.payload_of(entry).into()));
        };
        let Some(reading @ Reading { now: Some(now), moment, .. }) = self.saving().reading(save) else {
            return Ok(0); // without a tick there are no entries
        };
        // In the caller's ticks: the places on the ring differ from filter to filter. Modulo 2⁶⁴, because an end may be
        // beyond the largest tick.
        let end = |place| now.wrapping_add(reading.ticks_until(clock.ring, place));
        self.sum_of_copies(save, |entry| {
            let place = self.layout.payload_of(entry);
            clock.ring.is_live(moment, place).then(|| end(place))
        })
    }

    /// The sum over all copies for which `payload` returns what their payload means.
    #[inline(always)]
    fn sum_of_copies(&self, save: SaveNumber, payload: impl Fn(Entry) -> Option<u64>) -> Result<u64, OutOfMemory> {
        let (mut bucket, mut sum) = (0, 0u64);
        each_chunk(self.words.len(), |start, words| self.read_chunk(save, start, words), &mut |words| {
            for &word in words {
                for entry in self.layout.entries(Bucket(word)) {
                    if let Some(payload) = payload(entry) {
                        let Item { first, second, .. } = self.buckets.item_in(self.layout, bucket, entry);
                        let fingerprint = self.layout.fingerprint_of(entry).0;
                        sum = sum.wrapping_add(digest::of_copy(fingerprint, first.min(second) as u64, payload));
                    }
                }
                bucket += 1;
            }
            Ok(())
        })
        .map_err(|_| OutOfMemory::new())?;
        Ok(sum)
    }
}
