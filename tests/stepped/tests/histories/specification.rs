//! What a filter of any kind must answer: it is a multiset of entries, which are pairs of a class and a number, with a
//! clock. The number is a value, the tick at which the entry ends, or 0.

use ccf_steps::{Advance, ExpiringInsertError, GrowableInsertError, InsertError, Values};
use todc_utils::specifications::Specification;

use crate::histories::room::{CLASSES, Room};

/// How many values there are. And the longest lifetime is less than this.
pub(crate) const NUMBERS: usize = 4;

/// How many entries each class has with each number, or with each number of ticks left. No entry has 0 ticks left.
pub(crate) type Entries = [[u8; NUMBERS]; CLASSES];

/// The multiset, and the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) now: u64,
    /// How many ticks after now were ended early.
    pub(crate) ahead: u64,
    pub(crate) entries: Entries,
}

/// Why an insert failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    Full,
    TooManyCopies(usize),
    /// The clock showed this tick.
    LifetimeTooLong(u64),
    Evicted {
        expires_at: u64,
        up_to: u64,
    },
    /// Which there is no reason for.
    Other,
}

macro_rules! failure_from {
    ($Error:ident, $($more:tt)*) => {
        impl From<$Error> for Failure {
            fn from(error: $Error) -> Self {
                match error {
                    $Error::Full { .. } => Self::Full,
                    $Error::TooManyCopies { copies, .. } => Self::TooManyCopies(copies),
                    $($more)*
                    _ => Self::Other,
                }
            }
        }
    };
}

failure_from!(InsertError,);
failure_from!(GrowableInsertError, GrowableInsertError::MaxCapacity { .. } => Self::Full,);
failure_from! {
    ExpiringInsertError,
    ExpiringInsertError::LifetimeTooLong { now, .. } => Self::LifetimeTooLong(now.get()),
    ExpiringInsertError::Evicted { expires_at, up_to, .. } => {
        Self::Evicted { expires_at: expires_at.get(), up_to: up_to.get() }
    }
}

/// What a thread asked about a class of keys, mostly with a number, and the answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Whether the entry was kept.
    Insert(u64, Result<bool, Failure>),
    InsertIfAbsent(u64, Result<bool, Failure>),
    /// The values that the key had.
    InsertValueIfAbsent(u64, Result<Values, Failure>),
    Renew(u64, Result<bool, Failure>),
    Contains(bool),
    Values(Values),
    ExpiresAt(Option<u64>),
    Count(u64, usize),
    Remove(u64, bool),
    /// Without an end.
    RemoveFirst(bool),
    /// Replace an old value by a new one.
    Replace(u64, u64, bool),
    /// What is in the way of an entry with this end was ended early: how many ticks.
    Evict(u64, Option<u64>),
}

impl Answer {
    /// The number of the entry that was added.
    pub(crate) fn added(&self) -> Option<u64> {
        match self {
            Self::Insert(number, Ok(true)) | Self::InsertIfAbsent(number, Ok(true)) => Some(*number),
            Self::InsertValueIfAbsent(number, Ok(told)) if told.is_empty() => Some(*number),
            _ => None,
        }
    }
}

/// What happened, as the checker sees it.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The filter was filled.
    Given(State),
    /// In a filter with this room, and with this longest lifetime if entries expire.
    Asked(Room, Option<u64>, usize, Answer),
    AdvanceTo(u64, Advance),
    /// A save had these entries, at this tick. For each, this many inserts were under way when it began. The save may have
    /// those or not, whenever they take effect. A replacement is either over when the save begins, or begins later.
    Saved {
        now: u64,
        entries: Entries,
        under_way: Entries,
    },
}

/// The specification.
pub(crate) struct Multiset;

impl Specification for Multiset {
    type State = State;
    type Operation = Operation;

    fn init() -> State {
        State::default()
    }

    fn apply(operation: &Operation, before: &State) -> (bool, State) {
        match operation {
            Operation::Given(state) => (true, *state),
            Operation::Saved { now, entries, under_way } => {
                let saved = entries.as_flattened().iter().zip(under_way.as_flattened());
                let mut all = before.entries.as_flattened().iter().zip(saved);
                let holds = all.all(|(&least, (saved, more))| (least..=least + more).contains(saved));
                (holds && *now == before.now, *before)
            }
            Operation::AdvanceTo(tick, answer) => {
                let (due, after) = before.advanced_to(*tick);
                (*answer == due, after)
            }
            Operation::Asked(room, longest, class, answer) => {
                let mut after = *before;
                (before.answers(room, *longest, *class, answer, &mut after), after)
            }
        }
    }
}

impl State {
    fn advanced_to(&self, tick: u64) -> (Advance, Self) {
        let mut after = *self;
        let due = match tick.checked_sub(self.now) {
            None => Advance::Behind { by: self.now - tick },
            Some(0) => Advance::Current,
            Some(ticks) => {
                after.now = tick;
                after.ahead = self.ahead.saturating_sub(ticks);
                for left in &mut after.entries {
                    let gone = NUMBERS.min(ticks as usize);
                    left.rotate_left(gone);
                    left[NUMBERS - gone..].fill(0);
                    // Entries with no tick left have expired.
                    left[0] = 0;
                }
                Advance::Forward { ticks }
            }
        };
        (due, after)
    }

    /// Whether this is a right answer. Sets what it changes in `after`.
    fn answers(&self, room: &Room, longest: Option<u64>, class: usize, answer: &Answer, after: &mut Self) -> bool {
        let copies = self.entries.map(|entries| entries.iter().sum());
        let entries = &mut after.entries[class];
        let is_in = copies[class] > 0;
        // The place of an entry with this number: that of its value, or how long it has left. `None` if the end is too far
        // away.
        let place = |number: u64| match longest {
            None => Some(number as usize),
            Some(longest) => {
                Some(number.saturating_sub(self.now)).filter(|&left| left <= longest).map(|left| left as usize)
            }
        };
        // Whether the entry would have expired.
        let is_expired = |number| longest.is_some() && place(number) == Some(0);
        // Whether the end is among those that were given up.
        let is_gone = |end| longest.is_some() && matches!(place(end), Some(left @ 1..) if left as u64 <= self.ahead);
        let add = |entries: &mut [u8; NUMBERS], number| {
            if let Some(place) = place(number).filter(|_| !is_expired(number)) {
                entries[place] += 1;
            }
            place(number).is_some() && !is_gone(number)
        };
        // An expired entry needs no room.
        let may_need_room = |number| place(number).is_some() && !is_expired(number);
        let failure_is_due = |number, failure| match failure {
            Failure::LifetimeTooLong(now) => place(number).is_none() && now == self.now,
            Failure::Evicted { expires_at, up_to } => {
                is_gone(number) && (expires_at, up_to) == (number, self.now + self.ahead)
            }
            Failure::Full => may_need_room(number) && room.fails(class, copies, None),
            Failure::TooManyCopies(copies_named) => {
                may_need_room(number) && room.fails(class, copies, Some(copies_named))
            }
            Failure::Other => false,
        };
        let failure_with_absent_is_due = |number, failure| {
            (!is_in || matches!(failure, Failure::LifetimeTooLong(_))) && failure_is_due(number, failure)
        };
        let has = |number| may_need_room(number) && self.entries[class][place(number).expect("there is one")] > 0;
        let has_just =
            |values: &Values| (0..NUMBERS as u64).filter(|&value| has(value)).eq(values.iter().map(u64::from));
        match *answer {
            Answer::Insert(number, Ok(kept)) => add(entries, number) && kept != is_expired(number),
            Answer::Insert(number, Err(failure)) => failure_is_due(number, failure),
            Answer::InsertIfAbsent(number, Ok(true)) => !is_in && add(entries, number) && !is_expired(number),
            Answer::InsertIfAbsent(number, Ok(false)) => place(number).is_some() && (is_in || is_expired(number)),
            Answer::InsertValueIfAbsent(number, Ok(told)) => {
                (!told.is_empty() || add(entries, number)) && has_just(&told)
            }
            Answer::InsertIfAbsent(number, Err(failure))
            | Answer::InsertValueIfAbsent(number, Err(failure))
            | Answer::Renew(number, Err(failure)) => failure_with_absent_is_due(number, failure),
            Answer::Renew(end, Ok(is_new)) => match (place(end), entries.iter().rposition(|&copies| copies > 0)) {
                (Some(0), _) => !is_new,
                (Some(_), Some(_)) if is_gone(end) => !is_new,
                (Some(left), Some(longest)) => {
                    entries[longest] -= 1;
                    entries[left.max(longest)] += 1;
                    !is_new
                }
                (Some(_), None) => add(entries, end) && is_new,
                (None, _) => false,
            },
            Answer::Contains(found) => found == is_in,
            Answer::Values(found) => has_just(&found),
            Answer::ExpiresAt(last) => {
                let left = entries.iter().rposition(|&copies| copies > 0);
                last == left.map(|left| self.now + left as u64)
            }
            Answer::Count(number, count) => count == usize::from(entries[place(number).expect("a value")]),
            Answer::Remove(number, removed) => {
                if has(number) && removed {
                    entries[place(number).expect("the entry is live")] -= 1;
                }
                removed == has(number)
            }
            Answer::RemoveFirst(removed) => {
                if removed && let Some(first) = entries.iter().position(|&copies| copies > 0) {
                    entries[first] -= 1;
                }
                removed == is_in
            }
            Answer::Replace(old, new, replaced) => {
                if has(old) {
                    entries[old as usize] -= 1;
                    entries[new as usize] += 1;
                }
                replaced == has(old)
            }
            Answer::Evict(end, answer) => {
                let ends = 1..place(end).unwrap_or(0);
                let mut more = copies;
                more[class] += 1;
                let has_room = room.fits(more) || is_gone(end) || !may_need_room(end);
                let has_entries = |left: usize| self.entries.iter().any(|entries| entries[left] > 0);
                match answer {
                    Some(0) => has_room,
                    // In a narrow world, all entries are in the way of each other.
                    None => {
                        !has_room
                            && (!room.is_narrow() || !ends.clone().any(has_entries) || room.is_full_of(copies[class]))
                    }
                    Some(more) => {
                        let last = (self.ahead + more) as usize;
                        after.ahead = last as u64;
                        after.entries.iter_mut().for_each(|entries| entries[..=last].fill(0));
                        !has_room
                            && ends.contains(&last)
                            && has_entries(last)
                            && (!room.is_narrow() || !(1..last).any(has_entries))
                    }
                }
            }
        }
    }
}
