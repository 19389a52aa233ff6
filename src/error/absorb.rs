//! Why one filter could not absorb another.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::error::kind::FilterKind;
use crate::error::message::messages;
use crate::word::human::{Time, s};
use crate::word::table_layout::TableLayout;
use crate::word::tick::Tick;
use crate::word::window::Window;

/// Why one filter could not absorb another, or unite with it. The message of each error (its `Display`) says what to do.
///
/// Nothing has changed, except if the error says how many copies were added before. Those copies stay. To get rid of
/// them, build the filter again. (After `unite` that is not needed, because it may be called again.)
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AbsorbError {
    /// The hashers differ, so the fingerprints of one filter mean nothing to the other.
    Hasher,
    /// The schemas differ: the keys of one filter are not those of the other. Needs the feature `snapshot`.
    #[cfg(feature = "snapshot")]
    #[non_exhaustive]
    Schema {
        /// The absorbing filter's.
        ours: String,
        /// The other filter's.
        theirs: String,
    },
    /// The layouts differ, or the numbers of buckets.
    #[non_exhaustive]
    Layout {
        /// The type of both filters.
        filter: FilterKind,
        /// The absorbing filter's.
        ours: TableLayout,
        /// The other filter's.
        theirs: TableLayout,
    },
    /// Two [`GrowableCuckooFilter`](crate::GrowableCuckooFilter)s have the same layout at their smallest and at their
    /// largest size, but were built with another [encoding](crate::GrowableBuilder::encoding) or other
    /// [expected keys](crate::GrowableBuilder::expected_keys), so one can't read the fingerprints of the other.
    Settings,
    /// The ticks of two [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter)s differ in length.
    #[non_exhaustive]
    Resolution {
        /// The absorbing filter's.
        ours: Duration,
        /// The other filter's.
        theirs: Duration,
    },
    /// The entries of the other [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) may live longer than those of
    /// the absorbing filter can.
    #[non_exhaustive]
    Lifetime {
        /// The longest lifetime in the absorbing filter, in ticks.
        ours: u64,
        /// The longest lifetime in the other filter.
        theirs: u64,
    },
    /// The clock of the absorbing [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is behind that of the
    /// other. Entries of the other may then expire later than the absorbing filter can express.
    #[non_exhaustive]
    ClockBehind {
        /// The tick of the absorbing filter, if its clock is set.
        ours: Option<Tick>,
        /// The tick of the other.
        theirs: Tick,
    },
    /// One [`RecentCuckooFilter`](crate::RecentCuckooFilter) holds the last keys, and the other one those of a time. How many
    /// keys have come after one is not known from its age, nor its age from that number.
    #[non_exhaustive]
    Window {
        /// The window of the filter that was to take over the other's keys.
        ours: Window,
        /// The other's.
        theirs: Window,
    },
    /// Both filters together hold more than the capacity of the absorbing one.
    #[non_exhaustive]
    OverCapacity {
        /// How many copies the absorbing filter holds.
        len: usize,
        /// How many copies the other holds.
        other_len: usize,
        /// The capacity of the absorbing filter.
        capacity: usize,
    },
    /// There was no room for a copy. Below the capacity this happens only if many keys have several copies in both filters
    /// together, or if other threads insert meanwhile.
    #[non_exhaustive]
    Full {
        /// How many copies were added.
        absorbed: u64,
        /// How many copies the absorbing filter held.
        len: usize,
        /// Its capacity.
        capacity: usize,
    },
    /// There are as many copies of a key as there may be: they fill the key's two buckets, or
    /// [half](crate::guide::growth#copies) of them in a growable filter.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies were added.
        absorbed: u64,
        /// How many copies of the key there are.
        copies: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full at its largest size.
    #[non_exhaustive]
    MaxCapacity {
        /// How many copies were added.
        absorbed: u64,
        /// How many copies the absorbing filter held.
        len: usize,
        /// Its largest capacity.
        max_capacity: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full, and may not take more memory.
    #[non_exhaustive]
    MemoryLimit {
        /// How many copies were added.
        absorbed: u64,
        /// How many copies the absorbing filter held.
        len: usize,
        /// How many it takes within the limit.
        capacity: usize,
        /// How many bytes it would use with more buckets.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The absorbing [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) has
    /// [evicted](crate::WhenFull::EvictSoonest) the ticks at which some entries of the other expire, so an insert of
    /// these fails. All others were added.
    #[non_exhaustive]
    Evicted {
        /// How many entries were added.
        absorbed: u64,
        /// How many were not, because their ticks were evicted.
        rejected: u64,
        /// The last tick that the absorbing filter has evicted.
        up_to: Tick,
    },
    /// The clock of the absorbing [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) was set back meanwhile, by
    /// [`restart_clock`](crate::ExpiringCuckooFilter::restart_clock).
    #[non_exhaustive]
    ClockSetBack {
        /// How many copies were added.
        absorbed: u64,
    },
    /// An allocation failed: for the old words of buckets that other threads change meanwhile in the other filter, or
    /// for the growth of the absorbing one.
    #[non_exhaustive]
    OutOfMemory {
        /// How many copies were added.
        absorbed: u64,
    },
}

/// What to do if copies of keys fill their buckets. Whoever needs each copy must not be told to unite.
const ONCE_EACH: &str = "absorb adds every copy that the other filter holds; if one copy of each key is enough, call \
     unite on a filter that empty_like has made";

/// What to do when a part of the copies was added.
const AGAIN: &str = "if it was unite, call it again, and otherwise build this filter again and repeat it";

/// Why a growable filter that can grow no further has no room, by how many copies it holds and takes.
struct NoRoom(usize, usize);

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(len, capacity) if len < capacity => write!(
                f,
                "copies of other keys fill its buckets, although this filter holds only {len} copies and has room for {capacity} \
                 at its largest size"
            ),
            Self(len, capacity) => {
                write!(
                    f,
                    "this filter is full at its largest size: it holds {len} copies, and takes no more than {capacity}"
                )
            }
        }
    }
}

messages! {
    AbsorbError:
    Self::Hasher =>
        "the filters have different hashers, or the same hasher with different keys; build both with clones of one hasher, \
         or one by empty_like of the other (each with_capacity and each builder draws a new key)";
    #[cfg(feature = "snapshot")]
    Self::Schema { ours, theirs } =>
        "this filter has the schema {ours:?}, and the other has {theirs:?}; if their keys are the same, \
         build both with one schema";
    Self::Layout { filter, ours, theirs } =>
        "this filter has {ours}, and the other has {theirs}; {}", match filter {
            FilterKind::Recent => "for another window, build one by empty_like_last or empty_like_within of the other, or insert \
                into both until the other's window is over",
            _ => "build both with the same settings, or one by empty_like of the other",
        };
    Self::Settings =>
        "the filters were built with other settings (encoding, expected_keys, max_capacity or false_positive_rate), so \
         they store other fingerprints of a key; build both with the same settings, or one by empty_like of the other";
    Self::Window { ours, theirs } =>
        "this filter holds {ours}, and the other {theirs}, so how much longer a key is to stay cannot be converted; build \
         both with last or both with within, or insert into both until the other's window is over";
    Self::Resolution { ours, theirs } =>
        "a tick of this filter is {}, and one of the other is {}; build both with the same resolution",
        Time(*ours), Time(*theirs);
    Self::Lifetime { ours, theirs } =>
        "entries of this filter live for {ours} tick{} at most, and those of the other for {theirs}; build \
         both for the longer lifetime", s(*ours);
    Self::ClockBehind { ours: None, theirs } =>
        "the clock of this filter is not set, and the other is at tick {theirs}; call advance_to(Tick::new({theirs})) \
         first";
    Self::ClockBehind { ours: Some(ours), theirs } =>
        "this filter is at tick {ours}, and the other at tick {theirs}; call advance_to(Tick::new({theirs})) first";
    Self::OverCapacity { len, other_len, capacity } =>
        "this filter holds {len} copies and the other {other_len}, but this filter has a capacity of {capacity}; build both \
         with more capacity";
    Self::TooManyCopies { absorbed, copies } =>
        "{}: this filter already holds {copies} copies of its key, the most that it can hold; {ONCE_EACH}; otherwise add \
         fewer copies of it", After(*absorbed);
    Self::Full { absorbed, len, capacity } if len < capacity =>
        "{}: copies of other keys fill its buckets, although this filter holds only {len} copies and has a capacity of \
         {capacity}; {ONCE_EACH}; otherwise build the filters with more capacity, or reserve it in one that grows",
        After(*absorbed);
    Self::Full { absorbed, len, capacity } =>
        "{}: this filter is full with {len} copies, at a capacity of {capacity}; make room and call it again if it was \
         unite, or build the filters with more capacity, or reserve it in one that grows", After(*absorbed);
    Self::MaxCapacity { absorbed, len, max_capacity } =>
        "{}: {}; build the filters with a larger max_capacity", After(*absorbed), NoRoom(*len, *max_capacity);
    Self::MemoryLimit { absorbed, len, capacity, needed, limit } =>
        "{}: {}, and with more buckets it would take up {needed} bytes, more than its limit of {limit}; build or load it with a \
         higher memory_limit", After(*absorbed), NoRoom(*len, *capacity);
    Self::Evicted { absorbed, rejected, up_to } =>
        "of the other filter's entries, {absorbed} were added, and {rejected} were not, because they expire at ticks that \
         this filter has evicted, up to tick {up_to}; if they are needed until then, build this filter with more capacity, or merge \
         both into a filter that empty_like has made";
    Self::ClockSetBack { absorbed } =>
        "after {absorbed} cop{} added, the clock of this filter was set back; {AGAIN}, and don't call restart_clock \
         meanwhile", ies_were(*absorbed);
    Self::OutOfMemory { absorbed } =>
        "after {absorbed} cop{} added, an allocation failed: for growth, or for buckets that other threads change \
         meanwhile; {AGAIN}, with fewer changes to the other, or more memory",
        ies_were(*absorbed);
}

/// How many copies were added before one that was not.
struct After(u64);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "the first copy was not added"),
            absorbed => write!(f, "after {absorbed} cop{} added, one was not", ies_were(absorbed)),
        }
    }
}

fn ies_were(copies: u64) -> &'static str {
    if copies == 1 { "y was" } else { "ies were" }
}

impl Error for AbsorbError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A growable filter that holds fewer copies than it takes has no room only for keys that collide.
    #[test]
    fn the_advice_for_a_growable_filter_depends_on_how_full_it_is() {
        for len in [99, 100] {
            for text in [
                AbsorbError::MaxCapacity { absorbed: 1, len, max_capacity: 100 },
                AbsorbError::MemoryLimit { absorbed: 1, len, capacity: 100, needed: 5000, limit: 4000 },
            ]
            .map(|error| error.to_string())
            {
                assert!(text.starts_with("after 1 copy was added, one was not: "), "{text}");
                let says = if len < 100 {
                    "copies of other keys fill its buckets"
                } else {
                    "holds 100 copies, and takes no more"
                };
                assert!(text.contains(says) && text.contains("100"), "{text}");
                assert_eq!(text.contains("is full"), len == 100, "{text}");
            }
        }
    }

    /// A union can be called again, and a sum cannot.
    #[test]
    fn what_was_added_in_part_is_continued_or_built_again() {
        for error in [AbsorbError::ClockSetBack { absorbed: 2 }, AbsorbError::OutOfMemory { absorbed: 2 }] {
            let text = error.to_string();
            assert!(text.contains("2 copies were added") && text.contains("if it was unite, call it again"), "{text}");
            assert!(text.contains("otherwise build this filter again"), "{text}");
        }
    }
}
