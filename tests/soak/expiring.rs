//! The soak of a filter whose entries expire one by one, with a clock that advances while all threads work.
//!
//! Each lookup that ends before `advance_to(e)` begins must find an entry with the end `e`. No lookup that begins after
//! `advance_to(e)` has returned may find it. So the round keeps two ticks: the last one that a thread was about to pass
//! (`begun`), and the last one that took effect (`done`).

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, ExpiringInsertError, Tick};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::kinds::Table;
use crate::rounds::Count::{Inserts, Lookups, Ticks as TicksPassed};
use crate::rounds::{Tally, key, some_capacity};
use crate::support::{Identity, MAPLET_LAYOUTS, Raw};
use crate::worker::{Kind, Own, Round, Sizes, Ticks, Worker};

type Filter = ExpiringCuckooFilter<Raw, BuildHasherDefault<Identity>>;

pub(crate) struct Expiring {
    seed: u64,
    size: &'static str,
    longest: u64,
    /// The longest pause between two ticks, in microseconds.
    pause: u64,
    /// How many more calls pass each tick. Each call sweeps a part of the table.
    calls: u64,
    filter: Filter,
    begun: AtomicU64,
    done: AtomicU64,
    /// The keys that always have a live entry: the clock's thread adds a new one before the old one dies.
    refreshed: Vec<Raw>,
    /// The ends of those entries.
    ends: Vec<AtomicU64>,
    /// Raised each time the refreshed keys begin or cease to be in throughout. While it is odd, they are in.
    times: AtomicU64,
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

    /// Adds entries of the refreshed keys that live beyond a clock advanced by this many ticks, if there can be any.
    fn refresh(&self, by: u64, worker: &mut Worker<'_, Self>) {
        let (now, mut are_in) = (self.done(), by < self.longest);
        if are_in {
            let end = now + by + 1 + worker.random.random_range(0..(self.longest - by).min(3));
            for (key, last) in self.refreshed.iter().zip(&self.ends) {
                if last.load(SeqCst) <= now + by {
                    // The old entry is renewed, or lives on until it dies.
                    let renews = worker.random.random();
                    let added = if renews {
                        self.filter.insert_or_renew_until(key, Tick::new(end))
                    } else {
                        self.filter.insert_until(key, Tick::new(end))
                    };
                    let added = worker.tally.taken(added).is_some();
                    last.store(if added { end } else { 0 }, SeqCst);
                    are_in &= added;
                }
            }
        }
        let times = self.times.load(SeqCst);
        self.times.store(times + u64::from((times % 2 == 1) != are_in), SeqCst);
    }

    /// Looks up a key that always has an entry, although not always the same one.
    fn look_up_refreshed(&self, worker: &mut Worker<'_, Self>) {
        let nth = worker.random.random_range(0..self.refreshed.len().max(1));
        let Some(key) = self.refreshed.get(nth) else { return };
        // Several times, so that it is looked up while it is refreshed.
        for _ in 0..8 {
            let before = self.times.load(SeqCst);
            let found = self.filter.contains(key);
            worker.tally[Lookups] += 1;
            let was_in = before % 2 == 1 && self.times.load(SeqCst) == before;
            assert!(found || !was_in, "a key that is refreshed before each tick was missed: {key:?}");
        }
    }

    fn renew(&self, worker: &mut Worker<'_, Self>) {
        let (at, end) = (worker.some(), self.some_number(&mut worker.random));
        let (is_new, ticks) = worker.timed(|| self.filter.insert_or_renew_until(&worker.own[at].key, Tick::new(end)));
        let Some(is_new) = worker.taken(at, end, ticks, is_new) else { return };
        if is_new {
            ticks.check_lived::<Self>(end, true);
        }
        let own = &mut worker.own[at];
        match own.numbers.iter_mut().max() {
            // It was live throughout, so its end has been put off.
            Some(latest) if *latest > ticks.after => {
                assert!(!is_new, "new, though it was live");
                return *latest = end.max(*latest);
            }
            // If it was live, only the later one of both ends is that of an entry. It is dead when the tick has taken
            // effect that another thread is about to pass. Until then a save can have an earlier moment.
            Some(latest) => {
                assert!(is_new || *latest > ticks.before || end <= ticks.after, "not new, though it was dead");
                own.unsure = own.unsure.max(*latest);
            }
            None => assert!(is_new || end <= ticks.after, "not new, though it was absent"),
        }
        worker.remember(at, end);
    }
}

impl Kind for Expiring {
    type Filter = Filter;

    /// An entry that dies would leave its owner.
    const CONTESTS: bool = false;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        // A layout with this many bits for an end. The lifetimes may be shorter.
        let (bits, rate, slots, _) = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        let least = 1 << (bits - 1);
        let longest = least + random.random_range(0..least) + u64::from(random.random_bool(0.5)) * (least - 1);
        let longest = longest.clamp(1, (1 << bits) - 1);
        let (size, capacity) = some_capacity(slots as u64, random);
        let builder = ExpiringCuckooFilter::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(capacity as usize).lifetime_in_ticks(longest).false_positive_rate(rate);
        let filter: Filter = builder.build().expect("a valid filter");
        let (pause, calls) = ([0, 0, 30, 1000][random.random_range(0..4)], [0, 1, 10, 100][random.random_range(0..4)]);
        let tick = random.random::<u64>() >> [20, 50][random.random_range(0..2)];
        filter.advance_to(Tick::new(tick));
        let longest = filter.plan().lifetime_in_ticks.expect("entries expire");
        let [begun, done, times] = [tick, tick, 0].map(AtomicU64::new);
        Self { seed, size, longest, pause, calls, filter, begun, done, refreshed: Vec::new(), ends: Vec::new(), times }
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn add(&self, entry @ (key, end): &(Raw, u64), way: u64) -> Result<bool, ExpiringInsertError> {
        if way.is_multiple_of(2) {
            self.filter.insert_or_renew_until(key, Tick::new(*end))
        } else {
            Table::insert_if_absent(&self.filter, entry)
        }
    }

    fn scratch(&self) -> Filter {
        let scratch = self.filter.another();
        scratch.advance_to(Tick::new(self.done()));
        scratch
    }

    fn names(&self) -> [String; 2] {
        let layout = self.filter.plan().layout;
        let lag = match (1u64 << layout.payload_bits) - self.longest {
            1 => "the longest lifetimes",
            _ => "shorter lifetimes",
        };
        let layout = format!("{} by {} and {}", layout.slots_per_bucket, layout.fingerprint_bits, layout.payload_bits);
        [format!("{layout}, {lag}"), format!("{} µs, {} calls: {}", self.pause, self.calls, self.size)]
    }

    /// From half full if all keys have an entry, to overfull if many have several.
    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let capacity = self.filter.capacity() as u64;
        let keys = capacity * random.random_range(50..100) / 100;
        Sizes { keys, permanent: keys / 4, entries: capacity * random.random_range(50..110) / 100 }
    }

    fn take_keys(&mut self, keys: &mut Vec<Raw>) {
        self.refreshed = keys.split_off(keys.len() - (keys.len() / 8).min(16));
        self.ends = self.refreshed.iter().map(|_| AtomicU64::new(0)).collect();
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

    fn other_step(worker: &mut Worker<'_, Self>) {
        let kind = &worker.round.kind;
        match worker.random.random_range(0..8) {
            0 => kind.bring_again(),
            1..4 if !worker.own.is_empty() => kind.renew(worker),
            _ => kind.look_up_refreshed(worker),
        }
    }

    /// The first thread advances the clock, mostly by one tick, until the others have ended. Meanwhile it does something
    /// else.
    fn lead(worker: &mut Worker<'_, Self>, steps: u64, others: &AtomicU64) {
        let kind = &worker.round.kind;
        if worker.id != 1 {
            return (0..steps).for_each(|_| worker.step());
        }
        while others.load(SeqCst) > 0 {
            if kind.pause > 0 {
                thread::sleep(Duration::from_micros(worker.random.random_range(0..kind.pause)));
            }
            let by = match worker.random.random_range(0..256) {
                0 => worker.random.random_range(0..1 << 30),
                1 => worker.random.random_range(0..2 * kind.longest + 3),
                2..64 => worker.random.random_range(1..=1 + kind.longest / 8),
                64..96 => 0,
                _ => 1,
            };
            kind.refresh(by, worker);
            kind.advance(by);
            (0..kind.calls).for_each(|_| kind.bring_again());
            worker.tally[TicksPassed] += u64::from(by > 0);
            (0..worker.random.random_range(0..20)).for_each(|_| worker.step());
        }
    }

    /// The loaded filter has exactly the live entries of these keys. They expire when they should, by the old clock or by
    /// a new one.
    #[cfg(feature = "snapshot")]
    fn check_saved(&self, loaded: &Filter, own: &[Own], ticks: Ticks, _: [Vec<(u64, u64)>; 2]) {
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
                let live = own.numbers.iter().max().is_some_and(|&latest| latest > moment + passed);
                if !live || own.numbers.iter().any(|&end| end > own.unsure && end > moment + passed) {
                    let found = loaded.contains(&own.key);
                    assert_eq!(found, live, "{own:?}, saved at {moment}, {passed} ticks later");
                }
            }
            passed += 1 + (moment + passed) % self.longest.div_ceil(2);
            loaded.advance_to(Tick::new(first + passed));
        }
        assert_eq!(loaded.live_len(), 0, "an entry in the snapshot does not expire");
    }

    /// All entries are there and expire when they should. Then there is room again.
    fn finish(&self, _: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>, tally: &mut Tally) {
        let (filter, now) = (&self.filter, self.done());
        let shown = filter.now().map(Tick::get);
        assert_eq!((shown, self.begun()), (Some(now), now), "the clock shows another tick than passed");
        let refreshed = std::iter::zip(&self.refreshed, &self.ends);
        let refreshed = refreshed.map(|(&key, end)| Own::new(key, vec![end.load(SeqCst)]));
        let mut own: Vec<_> = own.into_iter().chain(permanent).chain(refreshed).collect();
        for step in (0..=self.longest).step_by(1.max(self.longest as usize / 20)).chain([self.longest]) {
            filter.advance_to(Tick::new(now + step));
            own.iter_mut().for_each(|own| own.numbers.retain(|&end| end > now + step));
            let live: usize = own.iter().map(|own| own.numbers.len()).sum();
            assert_eq!(filter.live_len(), live, "the entries that are left are not those that were inserted");
            for own in &own {
                assert_eq!(
                    filter.contains(&own.key),
                    !own.numbers.is_empty(),
                    "{own:?} in the end, {step} ticks later"
                );
            }
            tally[Lookups] += own.len() as u64;
        }
        // Dead entries count as room.
        for index in 0..filter.capacity() as u64 {
            let taken = filter.insert_until(&key(self.seed, 1, index), Tick::new(now + self.longest + 1));
            assert!(
                taken.is_ok(),
                "all entries are dead, and yet there is no room for as many as the capacity: {taken:?}"
            );
        }
        tally[Inserts] += filter.capacity() as u64;
    }
}
