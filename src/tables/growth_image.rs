//! A filter that grows: how it is written as a snapshot, and how it is loaded from one.

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::snapshot::format::{Head, Saved};
use crate::snapshot::parts::{wanted_number, wanted_of_number};
use crate::snapshot::source::Source;
use crate::sync::AtomicU64;
use crate::table::image::images::Images;
use crate::tables::gates::Gates;
use crate::tables::growth::{Growing, Tables};
use crate::tables::growth_plan::{MAX_TABLES, Next, Plan, lowest_rate};
use crate::tables::places::Places;

impl Saved for Tables {
    const KIND: FilterKind = FilterKind::Growable;

    fn head(&self, images: &Images<'_>) -> Head {
        let mut head = [0; 18];
        head[..2].copy_from_slice(&[images.tables.len() as u8, wanted_number(self.plan.encoding)]);
        head[2..10].copy_from_slice(&(self.plan.buckets as u64).to_le_bytes());
        head[10..].copy_from_slice(&self.plan.rate.to_le_bytes());
        Head::of(&head)
    }

    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let [number, encoding] = source.take()?;
        let buckets = u64::from_le_bytes(source.take()?);
        let rate = f64::from_le_bytes(source.take()?);
        source.header_seal()?;
        let largest = sizing::LARGEST as u64;
        if buckets == 0 || !buckets.is_multiple_of(2) || buckets > largest {
            return Err(LoadError::InvalidBuckets { buckets, largest });
        }
        let encoding = wanted_of_number(encoding).ok_or(LoadError::UnknownEncoding { encoding })?;
        // Another machine may have computed a slightly different lowest rate.
        let lowest = lowest_rate(encoding);
        if !(rate >= lowest * (1.0 - 1e-9) && rate < 1.0) {
            return Err(LoadError::InvalidRate { rate, lowest });
        }
        let buckets = buckets as usize;
        let plan =
            Plan { buckets, rate, encoding, pages: Pages::DEFAULT, memory_limit: source.limit(), memory_of_caller };
        // No vector: nothing is allocated before it is known that the limit suffices.
        let mut planned = [const { None }; MAX_TABLES];
        planned.iter_mut().zip(plan.all()).for_each(|(place, next)| *place = Some(next));
        let most = planned.iter().flatten().count() as u8;
        if number == 0 || number > most {
            return Err(LoadError::InvalidTables { tables: number, least: 1, most });
        }
        let planned: &[Option<Next>] = &planned[..usize::from(number)];
        let in_all = planned.iter().flatten().fold(0usize, |sum, next| sum.saturating_add(next.buckets));
        source.expect_tables(planned.len(), in_all, 0)?;
        let bytes =
            planned.iter().flatten().fold(Gates::memory_for(buckets), |sum, next| sum.saturating_add(next.memory()));
        source.reserve(bytes.saturating_add(memory_of_caller))?;

        let out_of_memory = || LoadError::OutOfMemory { bytes };
        let tables = Places::default();
        tables.prepare(planned.len() - 1).ok_or_else(out_of_memory)?;
        for &next in planned.iter().flatten().rev() {
            let number = next.number;
            let stated = source.table_header(0, sizing::LARGEST)?;
            if (stated.shape, stated.buckets) != (next.shape, next.buckets) {
                return Err(LoadError::UnexpectedTable { number });
            }
            let mut table = plan.build(next).ok_or_else(out_of_memory)?;
            source.words(&mut *table)?;
            tables.set(number, table);
        }
        Ok(Self {
            tables,
            published: AtomicU64::new(u64::from(number)),
            gates: Gates::new(buckets).ok_or_else(out_of_memory)?,
            growth: Growing::new(),
            plan,
            #[cfg(ccf_model = "loom")]
            visits: AtomicU64::new(0),
        })
    }
}
