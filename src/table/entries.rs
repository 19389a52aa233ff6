//! PURE: what the entries of a table carry beside a fingerprint: nothing, a value, or an expiry. It is the type parameter of
//! `Table`. Whatever is different in a table whose entries expire is asked of it, and answered here: which entries are live,
//! and what else a lookup, a relocation or a save does because of that.
//!
//! `table/expiring` has the operations that only such a table has, with the proof, and `table/maplet.rs` those of a maplet.

use core::fmt::Debug;

use crate::lookup::query::{Presence, Query};
use crate::machine::memory::boxed;
use crate::table::counters::Counters;
use crate::table::expiring::clock::{self, Clock};
use crate::table::expiring::presence::LivePresence;
use crate::table::stripe::AllLocked;
use crate::word::layout::{Layout, RuntimeLayout, Shape, WithPayload};
use crate::word::ring::Reading;

/// What the entries of a table carry.
///
/// The default answers are those of entries that stay until they are removed. They are constants, so the compiler removes
/// what depends on them.
pub(crate) trait Entries: Debug + Send + Sync + Sized + 'static {
    type Layout: Layout + 'static;

    /// The layout of a table of this shape. `None` if there is no memory for its decode table.
    fn layout(shape: Shape) -> Option<Self::Layout>;

    /// Whether slots have a payload. Then each store is made under the lock of its stripe (`table/maplet.rs`).
    const HAVE_PAYLOAD: bool = <Self::Layout as Layout>::HAS_PAYLOAD;

    /// Whether entries expire. One that has expired stays in its slot until it is swept.
    const EXPIRE: bool = false;

    /// What an operation reads of the clock, to judge all entries by it: one word, or nothing.
    type Reading: Copy + Debug + PartialEq;

    fn reading(&self) -> Self::Reading;

    /// Whether the table may hold expired entries at this reading.
    fn may_hold_expired(&self, _: Self::Reading) -> bool {
        false
    }

    /// Whether an entry with this payload is live at this reading.
    fn is_live(&self, _: Self::Reading, _payload: u16) -> bool {
        true
    }

    /// What a lookup asks that looks for an entry of a key.
    type Presence<'a>: Query<Answer = bool>;

    fn presence(&self) -> Self::Presence<'_>;

    /// When an entry with this payload, which is live at this reading, expires: a tick of the clock's own.
    fn expiry(&self, _: Self::Reading, _payload: u16) -> u64 {
        u64::MAX
    }

    /// Counts the removal of an expired entry.
    fn count_expired(&self, _: &Counters, _payload: u16) {}

    /// What a save notes of the clock, if there is one.
    fn clock_state_for_save(&self, _: &AllLocked<'_>) -> Option<clock::ClockState> {
        None
    }

    /// What a payload adds to a digest, by what the save has noted. `None` for an entry that does not count.
    fn in_digest(&self, _: Option<clock::ClockState>, payload: u16) -> Option<u64> {
        Some(payload.into())
    }

    fn memory_usage(&self) -> usize {
        0
    }
}

/// Entries carry nothing: the table is a multiset of classes.
#[derive(Debug)]
pub(crate) struct Nothing;

/// Each entry carries a value, as in a maplet.
#[derive(Debug)]
pub(crate) struct Value;

/// Each entry carries its expiry, a tick of this clock. (In a box: what threads write is not beside the fields of `Table`,
/// which each operation reads.)
#[derive(Debug)]
pub(crate) struct Expiry(Box<Clock>);

impl Expiry {
    /// `None` if there is no memory for the clock.
    pub(crate) fn by(clock: Clock) -> Option<Self> {
        Some(Self(boxed(clock)?))
    }

    #[inline(always)]
    pub(in crate::table) fn clock(&self) -> &Clock {
        &self.0
    }
}

impl Entries for Nothing {
    type Layout = RuntimeLayout;
    type Reading = ();
    type Presence<'a> = Presence;

    fn layout(shape: Shape) -> Option<RuntimeLayout> {
        RuntimeLayout::try_of(shape)
    }

    fn reading(&self) {}

    fn presence(&self) -> Presence {
        Presence::WITH_ANY
    }
}

impl Entries for Value {
    type Layout = WithPayload;
    type Reading = ();
    type Presence<'a> = Presence;

    fn layout(shape: Shape) -> Option<WithPayload> {
        WithPayload::try_of(shape)
    }

    fn reading(&self) {}

    fn presence(&self) -> Presence {
        Presence::WITH_ANY
    }
}

impl Entries for Expiry {
    type Layout = WithPayload;
    type Reading = Reading;
    type Presence<'a> = LivePresence<'a>;

    const EXPIRE: bool = true;

    fn layout(shape: Shape) -> Option<WithPayload> {
        WithPayload::try_of(shape)
    }

    #[inline(always)]
    fn reading(&self) -> Reading {
        self.clock().reading()
    }

    #[inline(always)]
    fn presence(&self) -> LivePresence<'_> {
        LivePresence(self.clock())
    }

    #[inline(always)]
    fn may_hold_expired(&self, reading: Reading) -> bool {
        reading.lag() > 0
    }

    #[inline(always)]
    fn is_live(&self, reading: Reading, place: u16) -> bool {
        self.clock().ring.is_live(reading, place)
    }

    #[inline(always)]
    fn expiry(&self, reading: Reading, place: u16) -> u64 {
        self.clock().expiry_of(reading, place)
    }

    fn count_expired(&self, counters: &Counters, place: u16) {
        self.clock().count_expired_at(counters, place);
    }

    fn clock_state_for_save(&self, all: &AllLocked<'_>) -> Option<clock::ClockState> {
        Some(self.clock().state_for_save(all))
    }

    fn in_digest(&self, clock_state: Option<clock::ClockState>, place: u16) -> Option<u64> {
        // Without a tick there are no entries.
        let clock_state @ clock::ClockState { now: Some(now), reading, .. } = clock_state? else { return None };
        // In the caller's ticks: the places on the ring differ from filter to filter. Modulo 2⁶⁴, because an expiry may be
        // beyond the largest tick.
        let (ring, now) = (self.clock().ring, self.clock().as_callers(now));
        ring.is_live(reading, place).then(|| now.wrapping_add(clock_state.ticks_until(ring, place)))
    }

    fn memory_usage(&self) -> usize {
        self.clock().memory_usage()
    }
}
