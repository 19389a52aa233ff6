//! The advice of the guide that costs keys, payments or time where it is not followed: what the page says, and beside it
//! the mistake that it warns of, whose harm the test must find.

mod support;

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, ConcurrentCuckooFilter, ExpiringCuckooFilter, Tick};
use support::{Identity, Raw, hashes};

/// The pages `security`, *Hazards without an adversary*, and `migrating`, *cuckoofilter*.
mod removal {
    use super::*;

    const KEYS: usize = 100_000;

    /// Adds all keys by `insert_if_absent`, and removes every second one if the answer to it allows that. Returns the answers
    /// for the keys that are to stay and are missing: whether they were new.
    fn lost(may_be_removed: fn(bool) -> bool) -> Vec<bool> {
        let builder = ConcurrentCuckooFilter::<Raw>::builder().capacity(KEYS).false_positive_rate(0.03);
        let filter = builder.hasher(BuildHasherDefault::<Identity>::default()).build().unwrap();
        let added: Vec<_> = hashes(0, KEYS).map(|key| (key, filter.insert_if_absent(&key).unwrap())).collect();
        for (key, _) in added.iter().step_by(2).filter(|(_, was_new)| may_be_removed(*was_new)) {
            let removed = filter.remove(key);
            assert!(removed || may_be_removed(false), "no other removal takes its copy");
        }
        let lost = added.iter().skip(1).step_by(2).filter(|(key, _)| !filter.contains(key));
        lost.map(|&(_, was_new)| was_new).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_keys_that_were_new_loses_only_keys_that_were_taken_for_others() {
        let lost = lost(|was_new| was_new);
        assert!(!lost.is_empty() && !lost.contains(&true), "one that was new is lost");
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn the_removal_of_all_loses_keys_that_were_new() {
        assert!(lost(|_| true).contains(&true), "so the page warns of it");
    }
}

/// The page `expiry`, *De-duplication without expiry*.
mod deduplication {
    use super::*;

    const KEYS: usize = 100_000;

    fn empty() -> ConcurrentCuckooFilter<Raw, BuildHasherDefault<Identity>> {
        let builder = ConcurrentCuckooFilter::<Raw>::builder().capacity(KEYS).false_positive_rate(0.03);
        builder.hasher(BuildHasherDefault::default()).build().unwrap()
    }

    /// Of so many distinct keys, the share that is dropped as seen before, relative to the filter's rate afterwards.
    fn loss(filter: &ConcurrentCuckooFilter<Raw, BuildHasherDefault<Identity>>, first: usize, count: usize) -> f64 {
        let dropped = hashes(first, count).filter(|key| !filter.insert_if_absent(key).unwrap()).count();
        dropped as f64 / count as f64 / filter.stats().false_positive_rate
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn a_filter_that_starts_empty_drops_half_as_many_keys_as_its_final_rate() {
        let loss = loss(&empty(), 0, KEYS);
        let says = format!("{loss:.2} of the final rate in a test");
        assert!(include_str!("../src/guide/expiry.md").contains(&says), "the page does not say: {says}");
        assert!((0.45..0.55).contains(&loss), "{loss}");
    }

    /// The mistake: to rely on half of the rate in a filter that already holds keys.
    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn a_filter_that_is_nearly_full_drops_keys_at_its_full_rate() {
        let filter = empty();
        loss(&filter, 0, KEYS * 9 / 10);
        let loss = loss(&filter, KEYS, KEYS / 10);
        assert!((0.85..1.1).contains(&loss), "{loss}");
    }
}

/// The page `first_program`, *Handle a full filter*.
mod full {
    use super::*;

    const TOKENS: usize = 2000;

    /// Tokens that are revoked in a filter with room for half of them.
    struct Revoked {
        filter: ConcurrentCuckooFilter<Raw, BuildHasherDefault<Identity>>,
        is_incomplete: AtomicBool,
    }

    impl Revoked {
        /// What a failed insert leads to is up to `on_error`.
        fn after(on_error: fn(&Self)) -> Self {
            let hasher = BuildHasherDefault::<Identity>::default();
            let filter = ConcurrentCuckooFilter::with_capacity_and_hasher(TOKENS / 2, hasher);
            let revoked = Self { filter, is_incomplete: AtomicBool::new(false) };
            for token in hashes(0, TOKENS) {
                if revoked.filter.insert_if_absent(&token).is_err() {
                    on_error(&revoked);
                }
            }
            revoked
        }

        fn may_be_revoked(&self, token: &Raw) -> bool {
            self.filter.contains(token) || self.is_incomplete.load(Ordering::Acquire)
        }

        fn accepted(&self) -> usize {
            hashes(0, TOKENS).filter(|token| !self.may_be_revoked(token)).count()
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn a_filter_that_lacks_a_key_answers_maybe_to_all() {
        let revoked = Revoked::after(|revoked| revoked.is_incomplete.store(true, Ordering::Release));
        assert_eq!(revoked.accepted(), 0);
        // As long as all have room, it answers for itself.
        let revoked = Revoked::after(|_| ());
        revoked.filter.clear();
        assert_eq!(revoked.accepted(), TOKENS);
    }

    /// The mistake: to ignore the error.
    #[test]
    #[cfg_attr(miri, ignore = "too many operations")]
    fn an_error_that_is_ignored_lets_revoked_tokens_pass() {
        let accepted = Revoked::after(|_| ()).accepted();
        assert!(accepted > TOKENS / 3, "{accepted}: so the page warns of it");
    }
}

/// The page `expiry`, *Clocks*.
mod clock {
    use super::*;

    const TICK: Duration = Duration::from_secs(300);
    const LONGEST_PAUSE: u64 = 6;
    const HOUR: Duration = Duration::from_secs(3600);

    /// As the page says: the time is checked before the filter believes it.
    fn advance(filter: &ExpiringCuckooFilter<str>, time: SystemTime) -> Result<Advance, String> {
        let tick = filter.tick_at(time).map_err(|error| error.to_string())?;
        let ahead = filter.now().map_or(0, |now| tick.get().saturating_sub(now.get()));
        if ahead > LONGEST_PAUSE {
            return Err(format!("the time is {ahead} ticks ahead of the filter's"));
        }
        Ok(filter.advance_to(tick))
    }

    /// A time at which a tick begins.
    fn noon() -> SystemTime {
        UNIX_EPOCH + 6_000_000 * TICK
    }

    /// At noon, with a token that is revoked for an hour.
    fn revoked() -> ExpiringCuckooFilter<str> {
        let filter =
            ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(HOUR).resolution(TICK).build().unwrap();
        advance(&filter, noon()).unwrap();
        assert_eq!(filter.insert_until("token-17", HOUR), Ok(true));
        filter
    }

    #[test]
    fn a_time_that_is_checked_first_ends_no_entry_by_mistake() {
        for jump in [35 * 60, 24 * 3600, 1 << 40].map(Duration::from_secs) {
            let filter = revoked();
            assert!(advance(&filter, noon() + jump).unwrap_err().contains("ahead"));
            assert!(filter.contains("token-17") && filter.now() == Some(Tick::new(6_000_000)));
            // The right time is believed again, as are pauses, and the entry lives exactly as long as it should.
            assert_eq!(advance(&filter, noon() + HOUR / 2), Ok(Advance::Forward { ticks: 6 }));
            assert_eq!(advance(&filter, noon() + HOUR), Ok(Advance::Forward { ticks: 6 }));
            assert!(filter.contains("token-17"), "the hour's last tick has just begun");
            assert_eq!(advance(&filter, noon() + HOUR + TICK), Ok(Advance::Forward { ticks: 1 }));
            assert!(!filter.contains("token-17"));
        }
        // The mistake: to look at the answer of `advance_to`.
        let filter = revoked();
        let Advance::Forward { ticks: 288 } = filter.advance_to(filter.tick_at(noon() + 24 * HOUR).unwrap()) else {
            panic!()
        };
        filter.advance_to(Tick::new(6_000_000));
        assert!(!filter.contains("token-17"), "by then it has expired for good");
    }
}
