use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, ExpiringInsertError, Expiry, Tick, TickError};
use proptest::prelude::*;

use crate::{Filter, filter};

/// The model of the filter: pairs of a key and an end, and a clock.
#[derive(Default)]
struct Model {
    ends: HashMap<u64, Vec<u64>>,
    now: Option<u64>,
    longest: u64,
}

impl Model {
    fn live(&self, key: u64) -> bool {
        self.ends.get(&key).is_some_and(|ends| !ends.is_empty())
    }

    fn len(&self) -> usize {
        self.ends.values().map(Vec::len).sum()
    }

    /// The reason for which an insert is refused, if it is.
    fn refused(&self, expires_at: u64) -> Option<&'static str> {
        match self.now {
            None => Some("no clock"),
            Some(now) if expires_at > now && expires_at - now > self.longest => Some("too long"),
            Some(_) => None,
        }
    }

    fn has_passed(&self, expires_at: u64) -> bool {
        self.now.is_some_and(|now| expires_at <= now)
    }

    fn add(&mut self, key: u64, expires_at: u64) {
        if !self.has_passed(expires_at) {
            self.ends.entry(key).or_default().push(expires_at);
        }
    }

    fn advance(&mut self, tick: u64) -> Advance {
        let Some(now) = self.now else {
            self.now = Some(tick);
            return Advance::Origin;
        };
        if tick < now {
            return Advance::Behind { by: now - tick };
        }
        self.now = Some(tick);
        self.ends.values_mut().for_each(|ends| ends.retain(|&end| end > tick));
        if tick == now { Advance::Current } else { Advance::Forward { ticks: tick - now } }
    }

    fn restart(&mut self, tick: u64) {
        let shift = tick.wrapping_sub(self.now.unwrap_or(tick));
        self.now = Some(tick);
        self.ends.values_mut().flatten().for_each(|end| *end = end.wrapping_add(shift));
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64, i64),
    InsertIfAbsent(u64, i64),
    Renew(u64, i64),
    Remove(u64),
    RemoveUntil(u64, i64),
    Advance(i64),
    Restart(u64),
    Clear,
}

fn operation(longest: u64) -> impl Strategy<Value = Operation> {
    let longest = longest as i64;
    let key = 0..6u64;
    let lifetime = prop_oneof![8 => 1..=longest, 1 => -1..=0i64, 1 => longest..longest + 3];
    let ticks = prop_oneof![12 => 0..3i64, 2 => 0..2 * longest + 4, 1 => -3..0i64, 1 => Just(1_000_000i64)];
    prop_oneof![
        6 => (key.clone(), lifetime.clone()).prop_map(|(key, lifetime)| Operation::Insert(key, lifetime)),
        2 => (key.clone(), lifetime.clone()).prop_map(|(key, lifetime)| Operation::InsertIfAbsent(key, lifetime)),
        2 => (key.clone(), lifetime.clone()).prop_map(|(key, lifetime)| Operation::Renew(key, lifetime)),
        2 => key.clone().prop_map(Operation::Remove),
        4 => (key, lifetime).prop_map(|(key, lifetime)| Operation::RemoveUntil(key, lifetime)),
        6 => ticks.prop_map(Operation::Advance),
        1 => prop_oneof![0..100u64, Just(u64::MAX - 70_000), any::<u64>()].prop_map(Operation::Restart),
        1 => Just(Operation::Clear),
    ]
}

/// Does the same operations on the filter and on the model. All answers must be the same.
fn compare(filter: &Filter, operations: &[Operation]) {
    let mut model = Model { longest: filter.plan().lifetime_in_ticks.unwrap(), ..Model::default() };
    for operation in operations {
        let at = |offset: i64| model.now.unwrap_or(1000).saturating_add_signed(offset);
        let checked = |expires_at: u64, refused: Option<ExpiringInsertError>| {
            let reason = refused.map(|error| match error {
                ExpiringInsertError::ClockNotSet => "no clock",
                ExpiringInsertError::LifetimeTooLong { expires_at: named, longest, .. } => {
                    assert_eq!((named.get(), longest), (expires_at, filter.plan().lifetime_in_ticks.unwrap()));
                    "too long"
                }
                ExpiringInsertError::Full { .. } | ExpiringInsertError::TooManyCopies { .. } => "full",
                error => panic!("{error}"),
            });
            if reason != Some("full") {
                assert_eq!(reason, model.refused(expires_at), "{operation:?}");
            }
            reason.is_none()
        };
        match *operation {
            Operation::Insert(key, offset) => {
                let end = at(offset);
                let kept = filter.insert_until(&key, Tick::new(end));
                if checked(end, kept.clone().err()) {
                    assert_eq!(kept, Ok(!model.has_passed(end)));
                    model.add(key, end);
                }
            }
            Operation::InsertIfAbsent(key, offset) => {
                let end = at(offset);
                let added = filter.insert_if_absent_until(&key, Tick::new(end));
                if checked(end, added.clone().err()) {
                    assert_eq!(added, Ok(!model.live(key) && !model.has_passed(end)));
                    if !model.live(key) {
                        model.add(key, end);
                    }
                }
            }
            Operation::Renew(key, offset) => {
                let end = at(offset);
                let is_new = filter.insert_or_renew_until(&key, Tick::new(end));
                if checked(end, is_new.clone().err()) {
                    assert_eq!(is_new, Ok(!model.live(key) && !model.has_passed(end)));
                    match model.ends.get_mut(&key).and_then(|ends| ends.iter_mut().max()) {
                        Some(latest) => *latest = end.max(*latest),
                        None => model.add(key, end),
                    }
                }
            }
            Operation::Remove(key) => {
                assert_eq!(filter.remove(&key), model.live(key), "{operation:?}");
                if let Some(ends) = model.ends.get_mut(&key) {
                    ends.sort_unstable();
                    ends.drain(..ends.len().min(1));
                }
            }
            Operation::RemoveUntil(key, offset) => {
                let end = at(offset);
                let place = model.ends.get(&key).and_then(|ends| ends.iter().position(|&one| one == end));
                assert_eq!(filter.remove_expiring_at(&key, Tick::new(end)), place.is_some(), "{operation:?}");
                if let Some(place) = place {
                    model.ends.get_mut(&key).expect("it was found").swap_remove(place);
                }
            }
            Operation::Advance(by) => {
                let tick = at(by);
                assert_eq!(filter.advance_to(Tick::new(tick)), model.advance(tick), "{operation:?}");
            }
            Operation::Restart(tick) => {
                // So that no end exceeds the largest number.
                let tick = tick.min(u64::MAX - 70_000);
                filter.restart_clock(Tick::new(tick));
                model.restart(tick);
            }
            Operation::Clear => {
                filter.clear();
                model.ends.clear();
            }
        }
        assert_eq!(filter.now().map(Tick::get), model.now);
        assert_eq!(filter.live_len(), model.len(), "after {operation:?}");
        assert!(filter.len() >= filter.live_len());
        for key in 0..6 {
            assert_eq!(filter.contains(&key), model.live(key), "{key} after {operation:?}");
            let last = model.ends.get(&key).and_then(|ends| ends.iter().copied().max());
            assert_eq!(filter.expires_at(&key).map(Tick::get), last, "{key} after {operation:?}");
        }
        let mut found = Vec::new();
        filter.contains_batch(&[0, 1, 2, 3, 4, 5], &mut found);
        assert_eq!(found, (0..6).map(|key| model.live(key)).collect::<Vec<_>>());
    }
    // Expired entries are swept if the clock is advanced often enough.
    if let Some(now) = filter.now() {
        filter.advance_to(now);
        filter.advance_to(now);
        assert_eq!((filter.len(), filter.stats().expiry.unwrap().oldest_unswept), (model.len(), None));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 600 }, ..ProptestConfig::default() })]

    #[test]
    fn every_lifetime_is_kept_to_the_tick(
        (longest, operations) in prop_oneof![Just(1u64), Just(2), Just(3), Just(14), Just(15), Just(63), Just(300), Just(65_535)]
            .prop_flat_map(|longest| (Just(longest), proptest::collection::vec(operation(longest), 1..200))),
    ) {
        // The lowest rate that exists, so that no key is mistaken for another.
        let bits = (u64::BITS - longest.leading_zeros()) as i32;
        let rate = 2f64.powi(bits - 29).max(1e-8);
        compare(&filter(100, longest, rate), &operations);
    }
}

/// A large table is swept little by little. Until then it has dead entries, which no lookup finds.
#[test]
fn what_has_expired_is_absent_before_it_is_swept() {
    let filter = filter(100_000, 15, 1e-6);
    filter.advance_to(Tick::new(10));
    let ends: Vec<(u64, u64)> = (0..30_000).map(|key| (key, 11 + key % 3)).collect();
    assert_eq!(
        filter.insert_until_batch(ends.iter().map(|(key, end)| (key, Tick::new(*end))), &mut Vec::new()),
        Ok(30_000)
    );
    filter.advance_to(Tick::new(11));
    assert!(filter.len() > 21_000, "{} are left, and 20,000 live", filter.len());
    let mut found = Vec::new();
    filter.contains_batch(ends.iter().map(|(key, _)| key), &mut found);
    for ((key, end), in_batch) in ends.into_iter().zip(found) {
        assert_eq!((filter.contains(&key), in_batch), (end > 11, end > 11), "{key}");
    }
}

/// The forms that `tests/batch.rs` does not have, with keys that repeat.
#[test]
fn a_batch_of_each_form_answers_as_the_single_form_does() {
    type Single = fn(&Filter, u64, u64) -> bool;
    type Batch = fn(&Filter, &[(u64, u64)], &mut Vec<bool>) -> usize;
    fn pairs(entries: &[(u64, u64)]) -> impl Iterator<Item = (&u64, Tick)> {
        entries.iter().map(|(key, end)| (key, Tick::new(*end)))
    }
    fn keys(entries: &[(u64, u64)]) -> impl Iterator<Item = &u64> {
        entries.iter().map(|(key, _)| key)
    }
    let forms: [(Single, Batch); 3] = [
        (
            |filter, key, end| filter.insert_or_renew_until(&key, Tick::new(end)).unwrap(),
            |filter, entries, added| filter.insert_or_renew_until_batch(pairs(entries), added).unwrap(),
        ),
        (
            |filter, key, _| filter.insert_if_absent(&key).unwrap(),
            |filter, entries, added| filter.insert_if_absent_batch(keys(entries), added).unwrap(),
        ),
        (
            |filter, key, _| filter.insert_or_renew(&key).unwrap(),
            |filter, entries, added| filter.insert_or_renew_batch(keys(entries), added).unwrap(),
        ),
    ];
    for (single, batch) in forms {
        let [one, batched] = [(); 2].map(|()| filter(5000, 15, 0.01));
        for now in [10, 14, 18] {
            one.advance_to(Tick::new(now));
            batched.advance_to(Tick::new(now));
            let entries: Vec<(u64, u64)> = (0..400).map(|nth| (50 * now + nth % 300, now + nth % 16)).collect();
            let expected: Vec<bool> = entries.iter().map(|&(key, end)| single(&one, key, end)).collect();
            let mut added = Vec::new();
            assert_eq!(batch(&batched, &entries, &mut added), expected.iter().filter(|&&added| added).count());
            assert_eq!(added, expected);
            assert_eq!((one.len(), one.digest().unwrap()), (batched.len(), batched.digest().unwrap()));
        }
    }
}

/// A time, a time to live and a tick lead to the same entries, singly and in a batch.
#[test]
fn an_expiry_can_be_a_tick_a_time_or_a_duration() {
    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let filter =
        ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime(hour).resolution(minute).build().unwrap();
    filter.advance_to(Tick::new(1000));
    let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
    // At the beginning of a tick, within it, and after seven minutes.
    let (on_time, late) = (Expiry::At(time(60 * 1005)), Expiry::At(time(60 * 1005 + 1)));
    let expiries = [Tick::new(1005).into(), on_time, late, Expiry::After(7 * minute)];
    let expected = [1005, 1005, 1006, 1008];
    for (key, expiry) in (0u64..).zip(expiries) {
        assert_eq!(filter.insert_until(&key, expiry), Ok(true));
    }
    let (keys, mut added) = ([10, 11, 12, 13u64], Vec::new());
    assert_eq!(filter.insert_or_renew_until_batch(keys.iter().zip(expiries), &mut added), Ok(4));
    for (key, end) in (0u64..).zip(expected) {
        assert_eq!([key, 10 + key].map(|key| filter.expires_at(&key)), [Some(Tick::new(end)); 2]);
    }
    let before_1970 = UNIX_EPOCH - Duration::from_secs(1);
    assert_eq!(filter.insert_until(&20, before_1970), Ok(false), "that is over");

    let by_ticks = ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
    by_ticks.advance_to(Tick::new(1000));
    let error = by_ticks.insert_until_batch([(&1, Tick::new(1005).into()), (&2, Expiry::After(minute))], &mut added);
    let error = error.unwrap_err();
    assert_eq!((error.index, error.error), (1, ExpiringInsertError::ResolutionUnknown));
    assert_eq!(by_ticks.insert_until(&3, time(0)), Err(ExpiringInsertError::ResolutionUnknown));
    assert_eq!(by_ticks.len(), 1);
}

/// What `remaining` says is never too short, wherever in a tick an entry was added, and at most one resolution too long.
#[test]
fn what_remains_is_rounded_up() {
    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let filter =
        ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime(hour).resolution(minute).build().unwrap();
    assert_eq!((filter.remaining(&1), filter.expires_at(&1), filter.remove(&1)), (Ok(None), None, false));
    filter.advance_to(Tick::new(1000));
    filter.insert_until(&1, Expiry::After(5 * minute)).unwrap();
    // For at least five minutes from any moment of tick 1000.
    assert_eq!((filter.remaining(&1), filter.expires_at(&1)), (Ok(Some(6 * minute)), Some(Tick::new(1006))));
    filter.insert_until(&1, Expiry::After(9 * minute)).unwrap();
    filter.advance_to(Tick::new(1002));
    assert_eq!(filter.remaining(&1), Ok(Some(8 * minute)), "of the longer one");
    filter.restart_clock(Tick::new(7));
    assert_eq!((filter.remaining(&1), filter.expires_at(&1)), (Ok(Some(8 * minute)), Some(Tick::new(15))));
    assert!(filter.remove(&1));
    assert_eq!(filter.expires_at(&1), Some(Tick::new(15)), "the one that ends first is gone");
    filter.advance_to(Tick::new(15));
    assert_eq!((filter.remaining(&1), filter.remove(&1)), (Ok(None), false));

    let by_ticks = ExpiringCuckooFilter::<u64>::builder().capacity(100).lifetime_in_ticks(9).build().unwrap();
    by_ticks.advance_to(Tick::new(u64::MAX - 3));
    by_ticks.insert(&1).unwrap();
    assert_eq!(by_ticks.remaining(&1), Err(TickError::ResolutionUnknown));
    assert_eq!(by_ticks.expires_at(&1), Some(Tick::new(u64::MAX)), "there is no later tick");
}
