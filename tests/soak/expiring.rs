//! The soak of a filter whose entries expire one by one, with a clock that advances while all threads work.
//!
//! Each lookup that ends before `advance_to(e)` begins must find an entry with the end `e`. No lookup that begins after
//! `advance_to(e)` has returned may find it. So the round keeps two ticks: the last one that a thread was about to pass
//! (`begun`), and the last one that took effect (`done`).

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, ExpiringInsertError, Tick};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::kinds::{self, Hasher, Table};
use crate::support::{MAPLET_LAYOUTS, Raw};
use crate::worker::{Kind, Own, Round, Sizes, Ticks, Worker, key, some_capacity};

pub(crate) struct Expiring {
    seed: u64,
    longest: u64,
    /// One in this many steps of the first thread advances the clock, and this many calls pass each tick again. Each call
    /// sweeps a part of the table.
    pace: u32,
    calls: u64,
    filter: kinds::Expiring,
    begun: AtomicU64,
    done: AtomicU64,
}

impl Expiring {
    /// Advances the clock by this many ticks.
    fn advance(&self, by: u64) {
        let tick = self.begun.fetch_add(by, SeqCst) + by;
        let advance = self.filter.advance_to(Tick::new(tick));
        self.done.fetch_max(tick, SeqCst);
        let expected = if by == 0 { Advance::Current } else { Advance::Forward { ticks: by } };
        // Another thread may have passed the same tick first.
        assert!(advance == expected || advance == Advance::Current, "{advance:?} is not {expected:?}");
    }

    /// Passes the tick again that another thread has passed, or is about to pass.
    fn bring_again(&self) {
        let tick = self.begun();
        let advance = self.filter.advance_to(Tick::new(tick));
        self.done.fetch_max(tick, SeqCst);
        assert!(self.filter.now() >= Some(Tick::new(tick)), "the tick has not taken effect: {advance:?}");
    }
}

impl Kind for Expiring {
    type Filter = kinds::Expiring;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        // A layout with this many bits for an end. The lifetimes may be shorter.
        let (bits, rate, slots, _) = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        let most = (1 << bits) - 1;
        let longest = if random.random() { most } else { random.random_range(1 << (bits - 1)..=most) };
        let builder = ExpiringCuckooFilter::builder().hasher(Hasher::default()).false_positive_rate(rate);
        let builder = builder.capacity(some_capacity(slots as u64, random) as usize).lifetime_in_ticks(longest);
        let filter: kinds::Expiring = builder.build().expect("a valid filter");
        let (pace, calls) = ([1, 8, 64][random.random_range(0..3)], [0, 1, 10][random.random_range(0..3)]);
        let tick = random.random::<u64>() >> [20, 50][random.random_range(0..2)];
        filter.advance_to(Tick::new(tick));
        let [begun, done] = [tick; 2].map(AtomicU64::new);
        Self { seed, longest, pace, calls, filter, begun, done }
    }

    fn filter(&self) -> &kinds::Expiring {
        &self.filter
    }

    fn add(&self, entry @ (key, end): &(Raw, u64), way: u64) -> Result<bool, ExpiringInsertError> {
        if way.is_multiple_of(2) {
            self.filter.insert_or_renew_until(key, Tick::new(*end))
        } else {
            Table::insert_if_absent(&self.filter, entry)
        }
    }

    /// From half full if all keys have an entry, to overfull if many have several.
    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let capacity = self.filter.capacity() as u64;
        let keys = capacity * random.random_range(50..100) / 100;
        Sizes { keys, permanent: keys / 4, entries: capacity * random.random_range(50..110) / 100 }
    }

    /// An end, mostly of an entry that lives. Now and then it is in the past, or too far away.
    fn some_number(&self, random: &mut SmallRng) -> u64 {
        let now = self.done();
        match random.random_range(0..32) {
            0 => now.saturating_sub(random.random_range(0..3)),
            1 => now + self.longest + random.random_range(0..4),
            2..8 => now + self.longest,
            _ => now + random.random_range(1..=self.longest),
        }
    }

    fn lasting(&self) -> u64 {
        self.done() + self.longest
    }

    fn lives(end: u64, tick: u64) -> bool {
        end > tick
    }

    fn done(&self) -> u64 {
        self.done.load(SeqCst)
    }

    fn begun(&self) -> u64 {
        self.begun.load(SeqCst)
    }

    fn check_answer(&self, own: &Own, end: u64, ticks: Ticks, answer: Result<(), &ExpiringInsertError>) {
        match answer {
            Ok(()) => {
                assert!(end <= ticks.after + self.longest, "a lifetime that is too long was taken: {end} of {own:?}");
            }
            Err(ExpiringInsertError::LifetimeTooLong { now, .. }) => {
                let now = now.get();
                let right = (ticks.before..=ticks.after).contains(&now) && end > now + self.longest;
                assert!(right, "it was not too long");
            }
            Err(ExpiringInsertError::TooManyCopies { copies, .. }) => {
                let live = own.numbers.iter().filter(|&&end| end > ticks.before).count();
                assert!(*copies <= live, "refused for {copies} entries of the key: {own:?}");
            }
            // The end of a round checks that there is room when all entries are dead.
            Err(ExpiringInsertError::Full { .. }) => (),
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    /// The first thread advances the clock, mostly by one tick.
    fn other_step(worker: &mut Worker<'_, Self>) {
        let (kind, random) = (&worker.round.kind, &mut worker.random);
        if worker.id != 1 || !random.random_ratio(1, kind.pace) {
            return kind.bring_again();
        }
        kind.advance(match random.random_range(0..256) {
            0 => random.random_range(0..1 << 30),
            1 => random.random_range(0..2 * kind.longest + 3),
            2..64 => random.random_range(1..=1 + kind.longest / 8),
            64..96 => 0,
            _ => 1,
        });
        (0..kind.calls).for_each(|_| kind.bring_again());
    }

    /// The loaded filter has exactly the live entries of these keys. They expire when they should, by the old clock or by
    /// a new one.
    #[cfg(feature = "snapshot")]
    fn check_saved(&self, loaded: &kinds::Expiring, own: &[Own], ticks: Ticks) {
        let moment = loaded.now().expect("the clock has a tick").get();
        assert!((ticks.before..=ticks.after).contains(&moment), "saved at {moment}");
        // The number that the round's present tick has from here on.
        let first = if moment.is_multiple_of(2) { moment } else { moment % 1000 };
        if first != moment {
            loaded.restart_clock(Tick::new(first));
        }
        let mut passed = 0;
        while passed <= 2 * self.longest + 2 {
            for own in own {
                let live = own.numbers.iter().any(|&end| end > moment + passed);
                assert_eq!(loaded.contains(&own.key), live, "{own:?}, saved at {moment}, {passed} ticks later");
            }
            passed += 1 + (moment + passed) % self.longest.div_ceil(2);
            loaded.advance_to(Tick::new(first + passed));
        }
        assert_eq!(loaded.live_len(), 0, "an entry in the snapshot does not expire");
    }

    /// All entries are there and expire when they should. Then there is room again.
    fn finish(&self, _: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>) {
        let (filter, now) = (&self.filter, self.done());
        let shown = filter.now().map(Tick::get);
        assert_eq!((shown, self.begun()), (Some(now), now), "the clock shows another tick than passed");
        let mut own = [own, permanent].concat();
        for step in (0..=self.longest).step_by(1.max(self.longest as usize / 20)).chain([self.longest]) {
            filter.advance_to(Tick::new(now + step));
            own.iter_mut().for_each(|own| own.numbers.retain(|&end| end > now + step));
            let live: usize = own.iter().map(|own| own.numbers.len()).sum();
            assert_eq!(filter.live_len(), live, "the entries that are left are not those that were inserted");
            for own in &own {
                let is_in = !own.numbers.is_empty();
                assert_eq!(filter.contains(&own.key), is_in, "{own:?} in the end, {step} ticks later");
            }
        }
        for index in 0..filter.capacity() as u64 {
            let taken = filter.insert_until(&key(self.seed, 1, index), Tick::new(now + self.longest + 1));
            taken.expect("all entries are dead, so there is room for as many as the capacity");
        }
    }
}
