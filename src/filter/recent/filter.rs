//! The filter of recent keys: its type.

use core::marker::PhantomData;
use core::time::Duration;

use crate::filter::by_hash::ByHash;
use crate::filter::shared::parts::Parts;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::time::TimeSource;
use crate::table::recent_table::RecentTable;

/// A cuckoo filter of recent keys: was this key among the last `n`, or seen within the last minute? It suits
/// deduplication of messages, and IDs of requests.
///
/// It is asked in one call, which never fails: [`insert`](Self::insert) returns whether the key is new, and remembers it. Old
/// keys leave by themselves, so the memory is constant. **When more keys come than it has room for, the oldest leave early.** So
/// whoever floods it makes a nonce that was captured valid again: for nonces, use an
/// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter#a-nonce-window), which rejects new keys when it is full. Many threads
/// share the filter as they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), whose notes on keys, hashers and
/// hazards apply here too.
///
/// ```
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::RecentCuckooFilter;
///
/// // The last million messages. At most one new message in a million is taken for a repeated one.
/// let seen = RecentCuckooFilter::<str>::builder().last(1_000_000).false_positive_rate(1e-6).build()?;
/// if seen.insert("message-17") {
///     // It is new: process it. Of all threads that get this message, at most one comes here.
/// }
/// assert!(!seen.insert("message-17"), "delivered twice");
///
/// // The requests of the last minute, of which 100,000 are expected in that time.
/// let minute = Duration::from_secs(60);
/// let requests = RecentCuckooFilter::<[u8]>::builder().within(minute, 100_000).false_positive_rate(1e-6).build()?;
/// assert!(requests.insert(&[1, 2, 3]));
/// assert!(!requests.insert(&[1, 2, 3]), "sent twice");
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
///
/// For keys that each expire at a time of their own, such as tokens, use an
/// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
///
/// A filter keeps its window. In a running program, or after a restart with another configuration, one with [another
/// window](crate::guide::expiry#another-window) takes over its keys, by [`unite`](Self::unite).
///
/// # The last *n* keys
///
/// A filter built with [`last`](crate::RecentBuilder::last) counts the keys for which `insert` has returned `true`. **A key
/// is found until at least `n` others were counted after it**, and it leaves before the filter has held more than
/// [`window().at_most`](crate::Window::Keys::at_most), by default 8% more than `n`: keys leave in groups, of which there are 13
/// or more. So this is not a cache of exactly `n` keys: ask for a smaller [tolerance](crate::RecentBuilder::tolerance) if 8% is
/// too much. Of inserts that overlap, each counts as after the other, or the other as after it.
///
/// - *Repeated keys* do not count, however often they come. Nor do new keys that are taken for recent ones (false positives).
/// - *Renewed keys* count as new ones do, but only the first time in each group. So a key that is renewed all the time counts
///   up to 13 times while `n` are counted, or as often as there are groups, and `n` includes it as often.
/// - *Removed keys* have counted.
///
/// The promise holds as long as no key is evicted. The filter has room for all that it may hold while up to 16 threads insert
/// at the same time, and evicts only if an insert finds no path to a free slot. (More threads may evict, if each of them counts
/// a key in a group that is full already.) For as many distinct keys as the [capacity](Self::capacity), the probability of that is
/// below one in a billion. (It may be higher if an adversary [chooses the keys](crate::guide::security#a-known-hasher-key) and
/// knows the hasher's key.) [`RecentStats`](crate::RecentStats) says whether it has happened.
///
/// # The keys of the last minute
///
/// A filter built with [`within`](crate::RecentBuilder::within) goes by the time. **A key is found for at least that
/// duration** after its insert began, and not longer than [`window().at_most`](crate::Window::Time::at_most), 8% more by
/// default. (A key may be found for longer while a call on another thread, which is removing keys that have expired, is
/// preempted.) If more keys come than there is room for, those that would expire first are evicted.
///
/// The time is that of a clock that nobody sets. It runs while the machine sleeps on Linux (`CLOCK_BOOTTIME`), macOS
/// (`CLOCK_MONOTONIC`) and Windows. On other systems it is the clock of [`std::time::Instant`], and may stand still then:
/// keys are found for longer. The filter reads it for the first time in the first operation. For a clock of your own there is
/// the [setting](crate::RecentBuilder::clock) of the builder.
///
/// # What concurrent callers may observe
///
/// Operations on keys are linearizable, and so is the expiry of a group: all its keys expire in one step. Of all threads that
/// race to insert one key, at most one gets `true`, until the key expires or is evicted or removed. A key for which a call
/// has returned is found by each call that begins later, until it leaves. Lookups take no lock and wait for no thread. The
/// page [`consistency`](crate::guide::consistency#the-other-types) says more.
///
/// # What an insert costs at most
///
/// An insert that finds room in a bucket of the key costs what [`insert`](Self::insert) says. In these cases it costs more:
///
/// - It relocates entries, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter).
/// - It finds no room, and evicts: a few searches for room, of about ten microseconds each, of which one holds all locks of
///   inserts. It waits for the thread that removes expired keys, if there is one. If even that makes no room, because more
///   keys than the whole filter has room for have come within a single group, it takes the place of one other key.
/// - In a filter of the last keys, a thread that removes expired keys is preempted while a whole group of new keys comes.
///   Then the next insert waits for that thread.
/// - In a filter of a time, no key came for the time of two groups. Then the next insert removes all keys that have expired,
///   in one pass over the table: about 80 ms for 100 MB. Lookups go on meanwhile.
pub struct RecentCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<RecentTable, S>,
    /// The filter takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<RecentTable, S>) -> Self {
        Self { parts, key: PhantomData }
    }
}

/// Operations by hash, and another clock.
impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
    /// Returns the filter with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }

    /// Returns the filter with another clock: from now on, it takes the time from this function. It makes no difference to a
    /// filter of the last keys. A filter that is to have a clock of yours from the beginning gets it by the
    /// [setting](crate::RecentBuilder::clock) of its builder.
    ///
    /// The clock is called at once: what it returns then is now, and each key keeps its age. So it may start anywhere, and the
    /// filter counts up to 584 years from there. The clock that the filter had is called once more, if it was ever read. Then
    /// the new one is called for each operation, and holds no lock of the filter then.
    ///
    /// **If a clock goes back**, the filter's time stands still until it has caught up. If the filter gets another clock before
    /// that, or is saved and loaded, its time goes on from the latest that it had reached, or from an earlier one by less than a
    /// thousandth of a group's time. So no key lives longer because a clock went back, but for that.
    ///
    /// It serves tests of your own, which need not wait until keys expire, and simulated time.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::RecentCuckooFilter;
    ///
    /// let second = Arc::new(AtomicU64::new(0));
    /// let clock = second.clone();
    /// let seen = RecentCuckooFilter::<str>::builder().within(Duration::from_secs(60), 1000).build()?;
    /// let seen = seen.with_clock(move || Duration::from_secs(clock.load(Ordering::Relaxed)));
    /// assert!(seen.insert("a"));
    /// second.store(60, Ordering::Relaxed);
    /// assert!(!seen.insert("a"), "within the last minute");
    /// second.store(65, Ordering::Relaxed);
    /// assert!(seen.insert("a"));
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let Parts { core, hasher, schema } = self.parts;
        Self::from_parts(Parts { core: core.with_time(TimeSource::of_caller(clock)), hasher, schema })
    }
}
