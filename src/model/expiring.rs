//! What the models see of a table with a clock. Not part of the real library.

#![allow(private_bounds, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::InsertError;
use crate::model::one_table::{AnyLayout, Image, Key, Table, empty};
use crate::plan::batch::BLOCK;
use crate::table::expiring::Unless;
use crate::table::expiring::clock::{Advance, Clock, Until};
use crate::word::geometry::Items;
use crate::word::payloads::PayloadOps;
use crate::word::ring::Ring;

/// A table whose entries expire. Ends have two bits, so four ticks can be told apart.
impl<L: AnyLayout> Table<L> {
    /// An empty table whose clock was set to the tick `now`. `longest` is the longest lifetime of its entries, up to
    /// 3 ticks.
    pub fn with_clock(buckets: usize, longest: u64, now: u64) -> Self {
        let clock = Clock::new(Ring::new(2), longest, None);
        let table = Self::of(empty::<L>(buckets).with_clock(clock).expect("a model has memory"));
        table.advance_to(now);
        table
    }

    /// Puts an entry of the key with this end into the bucket that the key tries first. That bucket must have room.
    pub fn place_until(&self, key: Key, expires_at: u64) {
        self.place(key.with::<L>((expires_at % 4) as u16));
    }

    /// [`ExpiringCuckooFilter::advance_to`](crate::ExpiringCuckooFilter::advance_to)
    pub fn advance_to(&self, tick: u64) -> Advance {
        self.0.table.advance(self.clock(), tick)
    }

    /// [`ExpiringCuckooFilter::restart_clock`](crate::ExpiringCuckooFilter::restart_clock)
    pub fn restart_clock(&self, tick: u64) {
        self.0.table.restart(self.clock(), tick);
    }

    /// [`ExpiringCuckooFilter::now`](crate::ExpiringCuckooFilter::now)
    pub fn now(&self) -> u64 {
        self.clock().now().expect("it was told a tick")
    }

    /// By how much the sweep lags behind.
    pub fn lag(&self) -> u64 {
        self.clock().read().moment.lag()
    }

    /// The current tick, read without any ordering.
    pub fn peek(&self) -> u64 {
        self.clock().peek()
    }

    /// [`ExpiringCuckooFilter::contains`](crate::ExpiringCuckooFilter::contains)
    pub fn contains_live(&self, key: Key) -> bool {
        self.0.table.contains_live_or_again(self.0.table.layout(), key.0, move || key.0)
    }

    /// [`ExpiringCuckooFilter::contains_batch`](crate::ExpiringCuckooFilter::contains_batch)
    pub fn contains_live_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        let mut answers = [false; BLOCK];
        let mut items = Items::NONE;
        keys.iter().enumerate().for_each(|(nth, key)| items.set(nth, key.0));
        self.0.table.contains_live_block(&items, N, None, &mut answers);
        core::array::from_fn(|nth| answers[nth])
    }

    /// [`ExpiringCuckooFilter::insert`](crate::ExpiringCuckooFilter::insert)
    pub fn insert_until(&self, key: Key, expires_at: u64) -> Result<(), InsertError> {
        self.0.table.add_until(self.0.table.layout(), key.0, Until::Tick(expires_at), Unless::Never).map(|_| ())
    }

    /// [`ExpiringCuckooFilter::insert_if_absent`](crate::ExpiringCuckooFilter::insert_if_absent)
    pub fn insert_if_absent_until(&self, key: Key, expires_at: u64) -> Result<bool, InsertError> {
        self.0.table.add_until(self.0.table.layout(), key.0, Until::Tick(expires_at), Unless::Present)
    }

    /// [`ExpiringCuckooFilter::keep_until`](crate::ExpiringCuckooFilter::keep_until)
    pub fn keep_until(&self, key: Key, expires_at: u64) -> Result<(), InsertError> {
        self.0.table.add_until(self.0.table.layout(), key.0, Until::Tick(expires_at), Unless::Extended).map(|_| ())
    }

    /// [`ExpiringCuckooFilter::remove`](crate::ExpiringCuckooFilter::remove)
    pub fn remove_until(&self, key: Key, expires_at: u64) -> bool {
        self.0.table.remove_until(self.0.table.layout(), key.0, expires_at)
    }

    /// One hop of a plan, for an entry of the key with this end.
    pub fn relocate_until(&self, key: Key, expires_at: u64) -> bool {
        self.relocate(key.with::<L>((expires_at % 4) as u16))
    }

    /// [`ExpiringCuckooFilter::live_len`](crate::ExpiringCuckooFilter::live_len)
    pub fn live_len(&self) -> usize {
        self.0.table.live_in(0)
    }

    fn clock(&self) -> &Clock {
        self.0.table.clock().expect("it was made with one")
    }
}

impl<L: AnyLayout> Image<L> {
    /// The tick at the moment of the save.
    pub fn now(&self) -> u64 {
        self.reading.and_then(|reading| reading.now).expect("the table has a clock, which was told a tick")
    }

    /// How many entries of the key with this end the image holds that were live at its moment.
    pub fn count_until(&self, key: Key, expires_at: u64) -> usize {
        let moment = self.reading.expect("the table has a clock").moment;
        let end = (expires_at % 4) as u16;
        if Ring::new(2).is_live(moment, end) { self.count(key.with::<L>(end)) } else { 0 }
    }

    /// How many entries of any key the image holds that were live at its moment.
    pub fn live(&self) -> usize {
        let moment = self.reading.expect("the table has a clock").moment;
        let is_live = |end| Ring::new(2).is_live(moment, end);
        self.words.iter().map(|&word| self.layout.count_payloads(word, is_live)).sum()
    }
}
