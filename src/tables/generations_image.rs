//! CONCURRENT: a filter that rotates as a snapshot, there and back.

use crate::error::load::LoadError;
use crate::snapshot::format::{Sink, Source};
use crate::sync::Ordering;
use crate::table::any::AnyTable;
use crate::tables::gates::Gates;
use crate::tables::generations::{Generations, MAX_GENERATIONS, MIN_GENERATIONS, Now};

/// The generation and the tick at which a save began.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    now: Now,
    next_tick: u64,
}

impl Generations {
    /// The moment of a save.
    pub(crate) fn moment(&self) -> Moment {
        // For a tick is stored after the rotations that it has brought.
        let _rotation = self.rotation.lock();
        Moment { now: self.now(), next_tick: self.next_tick.load(Ordering::Relaxed) }
    }

    /// Writes what is to be known of the generations that were live then, and them, the oldest first: see `snapshot/format.rs`.
    pub(crate) fn save(&self, Moment { now, next_tick }: Moment, sink: &mut Sink<'_>) -> std::io::Result<()> {
        sink.put(&[self.live_generations() as u8, u8::from(self.rotate_when_full)])?;
        sink.put(&now.generation().to_le_bytes())?;
        sink.put(&next_tick.to_le_bytes())?;
        sink.seal()?;
        let ring = self.tables.len();
        let mut ages = (0..self.live_generations()).rev();
        ages.try_for_each(|age| sink.section(&*self.tables[(now.table() + ring - age) % ring]))
    }

    /// Reads what [`save`](Self::save) has written, for a caller that takes up so much memory itself.
    pub(crate) fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        const LARGEST: u64 = u64::MAX >> Now::TABLE_BITS;
        let [live, flags] = source.take()?;
        let generation = u64::from_le_bytes(source.take()?);
        let next_tick = u64::from_le_bytes(source.take()?);
        source.header_seal()?;
        if !(MIN_GENERATIONS..=MAX_GENERATIONS).contains(&usize::from(live)) {
            return Err(LoadError::InvalidTables {
                tables: live,
                least: MIN_GENERATIONS as u8,
                most: MAX_GENERATIONS as u8,
            });
        }
        if generation > LARGEST {
            return Err(LoadError::InvalidGeneration { generation, largest: LARGEST });
        }
        if flags > 1 {
            return Err(LoadError::UnknownFlags { flags });
        }
        let live = usize::from(live);
        let plan = source.table_header()?;
        source.expect_tables_of(plan.buckets.saturating_mul(live))?;
        let ring = live + 1;
        let of_one = size_of::<Box<dyn AnyTable>>() + plan.memory_usage();
        let bytes = of_one.saturating_mul(ring).saturating_add(Gates::memory_for(plan.buckets));
        source.reserve(bytes.saturating_add(memory_of_caller))?;
        let mut loaded = Self::new(plan, live, flags == 1).ok_or(LoadError::OutOfMemory { bytes })?;
        for (number, table) in loaded.tables[..live].iter_mut().enumerate() {
            // The first one's header has been read.
            if number > 0 && source.table_header()? != plan {
                return Err(LoadError::UnexpectedTable { number });
            }
            source.words(&mut **table)?;
        }
        // Relaxed: nobody else has it yet.
        loaded.now.store(Now::new(generation, live - 1).0, Ordering::Relaxed);
        loaded.next_tick.store(next_tick, Ordering::Relaxed);
        Ok(loaded)
    }
}
