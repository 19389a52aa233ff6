//! A filter that rotates: how it is written as a snapshot, and how it is loaded from one.

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::plan::sizing;
use crate::snapshot::format::{Head, Saved};
use crate::snapshot::source::{Source, TABLE_HEADER};
use crate::sync::Ordering;
use crate::table::face::traits::FilterTable;
use crate::table::image::images::{Images, Rotation};
use crate::tables::gates::Gates;
use crate::tables::generations::{Generations, MAX_GENERATIONS, MIN_GENERATIONS, Now};

impl Saved for Generations {
    const KIND: FilterKind = FilterKind::Rotating;

    fn head(&self, images: &Images<'_>) -> Head {
        let Rotation { generation, next_tick } = images.rotation.expect("the filter rotates");
        let mut head = [0; 18];
        head[..2].copy_from_slice(&[self.live_generations() as u8, u8::from(self.rotate_when_full)]);
        head[2..10].copy_from_slice(&generation.to_le_bytes());
        head[10..].copy_from_slice(&next_tick.to_le_bytes());
        Head::of(&head)
    }

    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
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
        let plan = source.table_header(0, sizing::LARGEST_ALONE)?;
        source.expect_tables(live, plan.buckets.saturating_mul(live), TABLE_HEADER)?;
        let ring = live + 1;
        let of_one = size_of::<Box<dyn FilterTable>>() + plan.memory_usage();
        let bytes = of_one.saturating_mul(ring).saturating_add(Gates::memory_for(plan.buckets));
        source.reserve(bytes.saturating_add(memory_of_caller))?;
        let mut loaded = Self::new(plan, live, flags == 1).ok_or(LoadError::OutOfMemory { bytes })?;
        for (number, table) in loaded.tables[..live].iter_mut().enumerate() {
            // The first one's header has been read.
            if number > 0 && source.table_header(0, sizing::LARGEST_ALONE)? != plan {
                return Err(LoadError::UnexpectedTable { number });
            }
            source.words(&mut **table)?;
        }
        // Relaxed: no other thread has it yet.
        loaded.now.store(Now::new(generation, live - 1).0, Ordering::Relaxed);
        loaded.next_tick.store(next_tick, Ordering::Relaxed);
        Ok(loaded)
    }
}
