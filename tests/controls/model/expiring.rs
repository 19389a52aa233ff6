//! What models see of a table whose entries expire.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::ExpiringInsertError;
use crate::model::key::Key;
use crate::model::table::{Expiry, Image, ModelLayout, PAYLOAD_BITS, Smallest, Table, answers, one_block};
use crate::plan::window::{Division, Unit};
use crate::table::attempt::IfPresent;
use crate::table::core::Core as _;
use crate::table::entries;
use crate::table::expiring::charge::{Request, Verdict};
use crate::table::expiring::clock::{Advance, Clock, Drive, Until, WhenFull};
use crate::table::image::read::TableImage;
use crate::word::ring::Ring;

/// A table whose entries expire. Expiry have two bits, so four ticks can be told apart.
pub type Expiring<L = Smallest> = Table<Expiry, L>;

impl<L: ModelLayout> Expiring<L> {
    /// An empty table whose clock was set to the tick `now`. `longest` is the longest lifetime of its entries, up to
    /// 3 ticks.
    pub fn with_clock(buckets: usize, longest: u64, now: u64, when_full: WhenFull) -> Self {
        let clock = Clock::new(Ring::new(PAYLOAD_BITS), longest, None, when_full);
        let table = Self::by(buckets, clock);
        table.advance_to(now);
        table
    }

    fn by(buckets: usize, clock: Clock) -> Self {
        Self::of(buckets, entries::Expiry::by(clock).expect("a model has memory"))
    }

    /// Puts an entry of the key with this expiry into the bucket that the key tries first. That bucket must have room.
    pub fn place_until(&self, key: Key, expires_at: u64) {
        self.place(key.with((expires_at % 4) as u16));
    }

    pub fn advance_to(&self, tick: u64) -> Advance {
        self.0.advance_to(tick)
    }

    pub fn now(&self) -> u64 {
        self.clock().now().expect("it was told a tick")
    }

    pub fn lag(&self) -> u64 {
        self.clock().state().reading.lag()
    }

    pub fn peek(&self) -> u64 {
        self.clock().peek()
    }

    pub fn contains(&self, key: Key) -> bool {
        self.0.contains(key.hash())
    }

    pub fn contains_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        answers(|answers| self.0.contains_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn insert_until(&self, key: Key, expires_at: u64) -> Result<bool, ExpiringInsertError> {
        self.0.add_until(key.hash(), Until::Tick(expires_at), IfPresent::Add)
    }

    pub fn insert_if_absent_until(&self, key: Key, expires_at: u64) -> Result<bool, ExpiringInsertError> {
        self.0.add_until(key.hash(), Until::Tick(expires_at), IfPresent::Skip)
    }

    pub fn insert_or_renew_until(&self, key: Key, expires_at: u64) -> Result<bool, ExpiringInsertError> {
        self.0.add_until(key.hash(), Until::Tick(expires_at), IfPresent::Extend)
    }

    pub fn insert_or_renew(&self, key: Key) -> Result<bool, ExpiringInsertError> {
        self.0.add_until(key.hash(), Until::After(self.clock().longest()), IfPresent::Extend)
    }

    /// Ends early what is in the way of an entry of this key with this expiry, which found no room. Returns by how many
    /// ticks, 0 if there is room, or `None` if the insert is to fail.
    pub fn evict_for(&self, key: Key, expires_at: u64) -> Option<u64> {
        let table = &self.0.table;
        table.evict(table.item(key.hash()), &Until::Tick(expires_at), IfPresent::Add)
    }

    pub fn ahead(&self) -> u64 {
        self.clock().ahead()
    }

    pub fn remove_until(&self, key: Key, expires_at: u64) -> bool {
        self.0.remove_until(key.hash(), expires_at)
    }

    pub fn remove_first(&self, key: Key) -> bool {
        self.0.remove_first(key.hash())
    }

    pub fn expires_at(&self, key: Key) -> Option<u64> {
        self.0.last_expiry(key.hash()).map(|(now, ticks)| now + ticks)
    }

    pub fn relocate_until(&self, key: Key, expires_at: u64) -> bool {
        self.relocate(key.with((expires_at % 4) as u16))
    }

    pub fn live_len(&self) -> usize {
        self.0.live_in(0)
    }

    fn clock(&self) -> &Clock {
        self.0.clock()
    }
}

/// How many ticks a recent key lives in a model.
const RECENT_LIFETIME: u64 = 2;

/// A table of recent keys. Its ring has four places, as above.
impl<L: ModelLayout> Expiring<L> {
    /// A table whose ticks have so many keys, of which `added` have come. A key lives for two ticks. So it is found until
    /// `per_tick` others were counted after it.
    pub fn of_last_keys(buckets: usize, per_tick: u64, added: u64) -> Self {
        let drive = Drive::by_keys(per_tick, added).expect("a model has memory");
        let clock = Clock::with_drive(Ring::new(PAYLOAD_BITS), RECENT_LIFETIME, drive);
        Self::by(buckets, clock)
    }

    /// A table whose clock follows the time. A key lives for two ticks.
    pub fn of_recent_time(buckets: usize) -> Self {
        let clock = Clock::with_drive(Ring::new(PAYLOAD_BITS), RECENT_LIFETIME + 1, Drive::Time { tolerated_lag: 0 });
        Self::by(buckets, clock)
    }

    /// What a filter of recent keys does to insert a key, at this tick of the time.
    pub fn insert_recent(&self, key: Key, tick: u64) -> bool {
        self.add_recent(key, tick, IfPresent::Skip)
    }

    pub fn insert_or_renew_recent(&self, key: Key, tick: u64) -> bool {
        self.add_recent(key, tick, IfPresent::Extend)
    }

    fn add_recent(&self, key: Key, tick: u64, if_present: IfPresent) -> bool {
        self.0.move_on(tick, false);
        let until = Until::FromAtLeast { tick, ticks: RECENT_LIFETIME };
        let is_new = self.0.add_until(key.hash(), until, if_present).expect("no insert of a recent key fails");
        self.0.keep_up();
        is_new
    }

    /// What a filter of the last keys does to take over those of another one. Both have so many keys per tick.
    pub fn unite_recent(&self, other: &Self, per_tick: u64) {
        let division = Division { unit: Unit::Keys, per_tick, lifetime: RECENT_LIFETIME };
        let image = TableImage::begin(other.0.image_source()).expect("a model has memory");
        let (theirs, ours) = (image.clock_state().expect("it has a clock"), self.0.clock_state());
        let now = ours.now.expect("the filter has set its clock");
        let absorbed = self.0.unite_recent(&image, &|ticks| {
            let left = division.left_of(division, theirs.added, ticks)?;
            Some(now + division.ticks_for(left, ours.added.min(per_tick)))
        });
        assert!(absorbed.stopped.is_none(), "no union of recent keys fails");
    }

    /// What a filter of recent keys does after each insert.
    pub fn keep_up(&self) {
        self.0.keep_up();
    }

    pub fn move_on(&self, tick: u64) {
        self.0.move_on(tick, false);
    }

    pub fn evicted(&self) -> u64 {
        self.clock().tallies.evicted.load(crate::sync::Ordering::Relaxed)
    }

    /// By how many ticks keys were evicted early, at most.
    pub fn evicted_early_by(&self) -> u64 {
        self.clock().tallies.most_ahead.load(crate::sync::Ordering::Relaxed)
    }
}

/// A table of debts. Its ring has four places, as above, so a debt has up to three ticks.
impl<L: ModelLayout> Expiring<L> {
    pub fn of_debts(buckets: usize, when_full: WhenFull) -> Self {
        let clock =
            Clock::with_drive(Ring::new(PAYLOAD_BITS), 3, Drive::Time { tolerated_lag: 0 }).with_when_full(when_full);
        Self::by(buckets, clock)
    }

    /// What a rate limiter does for a request of so many ticks, at this tick of the time: until when it is rejected, if it
    /// is. A debt may end `most` ticks later.
    pub fn charge(&self, key: Key, tick: u64, cost: u64, most: u64) -> Result<(), u64> {
        if tick > self.clock().published_tick() {
            self.0.move_on(tick, false);
        }
        self.charge_by(key, tick, cost, most)
    }

    /// [`charge`](Self::charge) by a thread that could not move the clock on, because another one has the lock of the sweep.
    pub fn charge_by(&self, key: Key, tick: u64, cost: u64, most: u64) -> Result<(), u64> {
        match self.0.charge(key.hash(), Request { tick, cost, most }) {
            Verdict::Allowed => {
                self.0.keep_up();
                Ok(())
            }
            Verdict::Over { until } | Verdict::NoRoom { until } => Err(until),
        }
    }

    /// How many ticks of debt the key has, at this tick of the time.
    pub fn debt(&self, key: Key, tick: u64) -> u64 {
        self.0.move_on(tick, true);
        self.0.last_expiry(key.hash()).map_or(0, |(_, ticks)| ticks)
    }

    pub fn forgive(&self, key: Key, tick: u64) -> bool {
        self.0.move_on(tick, true);
        self.0.remove_first(key.hash())
    }
}

impl Image<Expiry> {
    pub fn now(&self) -> u64 {
        self.clock_state.and_then(|clock_state| clock_state.now).expect("the table has a clock, which was told a tick")
    }

    /// How many entries of the key with this expiry the image holds that were live at its moment.
    pub fn count_until(&self, key: Key, expires_at: u64) -> usize {
        let reading = self.clock_state.expect("the table has a clock").reading;
        let expiry = (expires_at % 4) as u16;
        if Ring::new(PAYLOAD_BITS).is_live(reading, expiry) { self.count(key.with(expiry)) } else { 0 }
    }

    /// How many entries of any key the image holds that were live at its moment.
    pub fn live(&self) -> usize {
        let reading = self.clock_state.expect("the table has a clock").reading;
        let is_live = |expiry| Ring::new(PAYLOAD_BITS).is_live(reading, expiry);
        self.words.iter().map(|&word| word.count_payloads(self.layout, is_live)).sum()
    }
}
