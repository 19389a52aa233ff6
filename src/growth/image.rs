//! CONCURRENT: images of a growing table, and the operations that filters require of any table.

use core::convert::Infallible;

#[cfg(feature = "snapshot")]
use crate::error::damage::SnapshotDamage;
use crate::error::insert::GrowableInsertError;
#[cfg(feature = "snapshot")]
use crate::error::kind::FilterKind;
#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::error::mismatch::UnsupportedSnapshot;
use crate::growth::growing_table::GrowingTable;
use crate::growth::limit::Checked;
#[cfg(feature = "snapshot")]
use crate::growth::plan::LOADS_WHILE_GROWING;
use crate::growth::plan::Plan;
use crate::plan::sizing::LoadLimit;
#[cfg(feature = "snapshot")]
use crate::snapshot::format::{Declared, KindHeader, SnapshotCore};
#[cfg(feature = "snapshot")]
use crate::snapshot::parts::{wanted_number, wanted_of_number};
#[cfg(feature = "snapshot")]
use crate::snapshot::source::SnapshotSource;
#[cfg(feature = "snapshot")]
use crate::sync::AtomicU64;
use crate::sync::MutexGuard;
#[cfg(feature = "snapshot")]
use crate::sync::sizes::GROUP;
use crate::sync::sizes::{GROWN_BEFORE_SAVE, MOST_GATES};
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::core::{Core, Dimensions};
use crate::table::counters::Counters;
use crate::table::expiring::clock::ClockState;
use crate::table::image::absorb::read;
use crate::table::image::copy_on_write::{CopiedWords, RunningSaves, SaveNumber};
use crate::table::image::merge::{Merge, MergeResult};
use crate::table::image::read::{ImageSource, TableImage};
use crate::word::bucket::Bucket;
use crate::word::classes::State;
use crate::word::digest;
use crate::word::layout::{Encoding, Shape};

impl GrowingTable {
    /// Calls `each` with a hash of the class of each copy in an image of `buckets` buckets, of which these are the
    /// words from `start` on, and with the side on which the copy is.
    pub(crate) fn each_hash<E>(
        &self,
        buckets: usize,
        start: usize,
        words: &[u64],
        each: &mut dyn FnMut(u64, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let (state, classes) = (State::of_buckets(buckets), self.plan.classes);
        (start..).zip(words).try_for_each(|(number, &word)| {
            let depth = state.depth(number);
            let mut entries = self.layout(depth).entries(Bucket(word));
            entries.try_for_each(|entry| each(classes.hash(classes.of_stored(number, depth, entry.0)), number % 2))
        })
    }

    /// Adds the copies of another table, all or those that this one lacks.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        let buckets = image.layout().1;
        // In an empty table that is at least as large, each copy has room where it is in the other one.
        let copies_table = self.len() == 0 && self.state().buckets() >= buckets;
        let if_present = match merge {
            Merge::Sum => IfPresent::Add,
            Merge::Union => IfPresent::Skip,
        };
        read(image, &mut |start, words, copies| {
            self.each_hash(buckets, start, words, &mut |hash, side| {
                let first = if copies_table { self.add_as_in_image(hash, side, if_present) } else { Attempt::NoRoom };
                let is_added = match first {
                    Attempt::NoRoom => self.insert_from_image(hash, if_present, buckets)?,
                    done => done == Attempt::Added,
                };
                *copies += u64::from(is_added);
                Ok(())
            })
        })
    }

    /// Adds a copy of an image on the side where it is in the image, if there is room there, and counts it. It adds a
    /// further copy or none, as `if_present` says, and holds the class's stripe.
    fn add_as_in_image(&self, hash: u64, side: usize, if_present: IfPresent) -> Attempt {
        let class = self.plan.classes.of(hash);
        if !self.counters().count_permitted_insert() {
            match self.check(class, if_present, &mut 0) {
                Ok(Checked::MayAdd) => {}
                Ok(Checked::Present) => return Attempt::Present,
                // An insert says why.
                Err(_) => return Attempt::NoRoom,
            }
        }
        let changing = self.lock_to_change(class.base, 1, None);
        let attempt = if if_present != IfPresent::Add && self.copies(class) != [0; 2] {
            Attempt::Present
        } else if self.add_on(class, side, changing.spare()) {
            Attempt::Added
        } else {
            Attempt::NoRoom
        };
        if attempt != Attempt::Added {
            self.counters().add_len(-1);
        }
        attempt
    }

    /// Adds a copy of an image of this many buckets, by an insert, which counts it. Returns whether it added one: not if
    /// there is one and `if_present` asks for no second. In a smaller table, a class may have fewer copies: if that is why
    /// the insert fails, the table becomes as large.
    fn insert_from_image(&self, hash: u64, if_present: IfPresent, buckets: usize) -> Result<bool, GrowableInsertError> {
        let insert = || match if_present {
            IfPresent::Add => self.insert(hash).map(|()| true),
            IfPresent::Skip | IfPresent::SkipEqual | IfPresent::Extend => self.insert_if_absent(hash),
        };
        insert().or_else(|error| {
            let is_smaller = self.state().buckets() < buckets;
            if is_smaller && self.grow_if_possible(buckets) { insert() } else { Err(error) }
        })
    }
}

impl GrowingTable {
    /// Locks the gates, as many as there are places for guards, in order. (A function of its own, so that its frame is gone
    /// when the save begins.)
    #[inline(never)]
    fn lock_gates<'a>(&'a self, held: &mut [Option<MutexGuard<'a, ()>>]) {
        for (nth, held) in held.iter_mut().enumerate() {
            *held = Some(self.nth_gate(nth));
        }
    }
}

impl ImageSource for GrowingTable {
    fn running_saves(&self) -> &RunningSaves {
        self.running_saves()
    }

    /// All gates are held too: so no insert is half done, and no bucket is being moved.
    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory> {
        loop {
            let gates = self.gates();
            // What it does not use is freed after the locks are released.
            let mut copied = Some(CopiedWords::new(self.state().buckets() + GROWN_BEFORE_SAVE)?);
            // The gates are given back before the lock of the size is taken, behind which a split may wait for them.
            let begun = self.under_all_locks(|all| {
                let mut held = [const { None }; MOST_GATES];
                self.lock_gates(&mut held[..gates]);
                // A table that has grown for the first time meanwhile has more of them.
                let is_all = self.gates() == gates;
                if self.state().is_moving() || !is_all {
                    return None;
                }
                let new = copied.take_if(|new| new.resize(self.state().buckets()))?;
                Some(self.running_saves().begin(all, new, None))
            });
            if let Some(begun) = begun {
                return Ok(begun);
            }
            let _resizing = self.resizing().lock.lock();
            self.recover();
        }
    }

    fn load(&self, bucket: usize) -> Bucket {
        self.load(bucket)
    }

    #[cfg(feature = "snapshot")]
    fn word(&self, bucket: usize) -> &AtomicU64 {
        self.word(bucket)
    }

    fn shape_of(&self, buckets: usize) -> Shape {
        self.plan.shape(State::of_buckets(buckets))
    }

    #[cfg(feature = "snapshot")]
    fn limit(&self) -> LoadLimit {
        LoadLimit::NONE
    }

    /// With the largest size and the encoding, as filters that differ in these cannot be merged. (The smallest size depends on
    /// the load while it grows too, and filters that differ in that can be.)
    fn of_classes(&self) -> [u64; 5] {
        let Plan { classes, largest, encoding, .. } = self.plan;
        let encoding = match encoding {
            None => 0,
            Some(Encoding::Plain) => 1,
            Some(Encoding::SemiSorted) => 2,
        };
        [encoding, 0, largest as u64, classes.base_bits().into(), classes.side_bits().into()]
    }

    fn copies_in(&self, buckets: usize, start: usize, words: &[u64]) -> u64 {
        let state = State::of_buckets(buckets);
        let occupied = |(number, &word): (usize, &u64)| self.layout(state.depth(number)).occupied(Bucket(word));
        (start..).zip(words).map(occupied).sum::<usize>() as u64
    }

    fn digest_of(&self, buckets: usize, _: Option<ClockState>, start: usize, words: &[u64]) -> u64 {
        let mut sum = 0u64;
        let Ok(()) = self.each_hash::<Infallible>(buckets, start, words, &mut |hash, _| {
            sum = sum.wrapping_add(digest::of_copy(hash as u32, hash >> 32, 0));
            Ok(())
        });
        sum
    }
}

impl Core for GrowingTable {
    fn dimensions(&self) -> Dimensions {
        let state = self.state();
        Dimensions {
            shape: self.plan.shape(state),
            buckets: state.buckets(),
            limit: LoadLimit::NONE,
            memory_usage: self.memory_usage(),
        }
    }

    fn counters(&self) -> &Counters {
        self.counters()
    }

    fn image_source(&self) -> &(dyn ImageSource + 'static) {
        self
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.prefetch(hashes);
    }

    fn clear(&self) {
        self.clear();
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn slots(&self) -> usize {
        self.plan.slots(self.state())
    }

    fn rate_with(&self, copies: usize) -> f64 {
        self.plan.rate(copies as f64)
    }
}

#[cfg(feature = "snapshot")]
impl SnapshotCore for GrowingTable {
    const KIND: FilterKind = FilterKind::Growable;

    /// The sizes, and the number of buckets.
    type Plan = (Plan, usize);

    fn kind_header(&self, _: &TableImage<'_>) -> KindHeader {
        let classes = self.plan.classes;
        let mut bytes = [0; 27];
        bytes[0] = wanted_number(self.plan.encoding);
        bytes[1] = classes.base_bits() as u8;
        bytes[2] = classes.side_bits() as u8;
        bytes[3..11].copy_from_slice(&(self.plan.first as u64).to_le_bytes());
        bytes[11..19].copy_from_slice(&(self.plan.largest as u64).to_le_bytes());
        bytes[19..].copy_from_slice(&self.plan.load_while_growing.to_le_bytes());
        KindHeader::of(&bytes)
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<(Plan, usize)>, LoadError> {
        let [encoding, base_bits, doublings] = source.take()?;
        let [first, largest] = [source.take()?, source.take()?].map(u64::from_le_bytes);
        let load_while_growing = f64::from_le_bytes(source.take()?);
        source.check_header()?;
        if !LOADS_WHILE_GROWING.contains(&load_while_growing) {
            return Err(SnapshotDamage::InvalidLoadWhileGrowing { load_while_growing }.into());
        }
        let encoding = wanted_of_number(encoding).ok_or(UnsupportedSnapshot::Encoding { encoding })?;
        let bits = [base_bits, doublings].map(u32::from);
        let plan = Plan::declared(bits, [first, largest], encoding, load_while_growing);
        let plan =
            plan.ok_or(SnapshotDamage::InvalidSizes { buckets: first, max_buckets: largest, base_bits, doublings })?;
        let is_possible =
            |buckets: &u64| (first..=plan.largest as u64).contains(buckets) && buckets.is_multiple_of(GROUP as u64);
        let buckets =
            source.growing_header(plan.largest, is_possible, |buckets| plan.shape(State::of_buckets(buckets)))?;
        let plan = match source.max_capacity() {
            None => plan,
            Some(max_capacity) => {
                let with_it = plan.with_max_capacity(max_capacity).filter(|plan| plan.largest >= buckets);
                with_it.ok_or_else(|| LoadError::MaxCapacity {
                    max_capacity,
                    least: plan.full_capacity(State::of_buckets(buckets)),
                    most: plan.widest().max_capacity(),
                })?
            }
        };
        Ok(Declared { plan: Self::filter_plan(&plan, buckets), clock_state: None, own: (plan, buckets) })
    }

    fn empty((plan, buckets): (Plan, usize), memory_limit: usize, memory_of_caller: usize) -> Result<Self, LoadError> {
        let plan = Plan { memory_limit, memory_of_caller, ..plan };
        let bytes = Self::memory_at(&plan, buckets);
        Self::of_buckets(plan, buckets).map_err(|_| LoadError::OutOfMemory { bytes })
    }

    fn check_len(&self, len: u64) -> Result<(), LoadError> {
        let limit = self.most();
        if len <= limit as u64 {
            return Ok(());
        }
        let max_capacity = self.plan.full_capacity(State::of_buckets(self.plan.largest));
        Err(LoadError::TooManyKeys { len, limit, max_capacity })
    }
}
