//! CONCURRENT: images of a filter that grows, and copies that come from them.

use std::io;
use std::sync::Arc;

#[cfg(feature = "snapshot")]
use crate::error::kind::FilterKind;
#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::growth::growth::Growth;
use crate::growth::level::Level;
#[cfg(feature = "snapshot")]
use crate::growth::plan::Plan;
#[cfg(feature = "snapshot")]
use crate::snapshot::format::{Head, Saved};
#[cfg(feature = "snapshot")]
use crate::snapshot::parts::{wanted_number, wanted_of_number};
#[cfg(feature = "snapshot")]
use crate::snapshot::source::Source;
#[cfg(feature = "snapshot")]
use crate::table::face::filter_plan::FilterPlan;
#[cfg(feature = "snapshot")]
use crate::table::face::traits::AnyTable;
use crate::table::image::absorb::{Absorbed, read};
use crate::table::image::images::{Imaged, Images, Kept, TableImage};

/// A level as it was at a moment that is past.
#[derive(Debug)]
pub(crate) struct LevelImage {
    level: Arc<Level>,
    image: TableImage<'static>,
}

impl LevelImage {
    /// How many copies there are by now.
    pub(crate) fn len(&self) -> usize {
        self.level.len()
    }
}

impl Growth {
    /// The table as it is at this moment.
    ///
    /// First ends a resize that is under way, so there is one table. A resize that begins later moves no entry out of a
    /// bucket before its word is set aside: whoever moves it has seen, by the lock, that the save has begun.
    pub(crate) fn image(&self) -> io::Result<LevelImage> {
        let (_resizing, ended) = self.at_rest();
        if !ended {
            let message = "the filter can neither end nor undo a resize, because it is full; remove some keys";
            return Err(io::Error::other(message));
        }
        let level = self.current_level();
        let image = TableImage::begin(Kept::Shared(Arc::clone(&level) as Arc<_>))?;
        Ok(LevelImage { level, image })
    }

    /// Adds all copies of a filter that is alike, whatever its level was.
    pub(crate) fn absorb_image(&self, LevelImage { level, image }: &LevelImage) -> Absorbed {
        read(image, |start, words, copies| {
            level.each_hash(start, words, &mut |hash| {
                self.insert(hash)?;
                *copies += 1;
                Ok(())
            })
        })
    }
}

#[cfg(ccf_model)]
impl LevelImage {
    /// Calls `each` with a hash of the class of each copy.
    pub(crate) fn each_hash(&self, mut each: impl FnMut(u64)) {
        let absorbed = read(&self.image, |start, words, _| {
            self.level.each_hash(start, words, &mut |hash| {
                each(hash);
                Ok(())
            })
        });
        assert!(absorbed.stopped.is_none(), "a model has memory");
    }
}

#[cfg(feature = "snapshot")]
impl Growth {
    /// The level of this table of the filter.
    fn level_of(&self, table: &dyn AnyTable) -> u32 {
        let level = (0..=self.plan.doublings).find(|&level| self.plan.buckets(level) == table.buckets());
        level.expect("the table is at one of the filter's levels")
    }
}

impl Imaged for Growth {
    fn begin_save(&self) -> io::Result<Images<'_>> {
        let mut tables = Vec::new();
        tables.try_reserve_exact(1)?;
        tables.push(self.image()?.image);
        Ok(Images { tables })
    }

    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]) {
        self.current().fill_from(start, words);
    }
}

#[cfg(feature = "snapshot")]
impl Saved for Growth {
    const KIND: FilterKind = FilterKind::Growable;

    /// The sizes and the level.
    type Stated = (Plan, u32);

    fn head(&self, images: &Images<'_>) -> Head {
        let level = self.level_of(images.tables[0].table());
        let [base, doublings, level] = [self.plan.base_bits(), self.plan.doublings, level].map(|number| number as u8);
        let mut head = [0; 12];
        head[..4].copy_from_slice(&[wanted_number(self.plan.encoding), base, doublings, level]);
        head[4..].copy_from_slice(&(self.plan.buckets(0) as u64).to_le_bytes());
        Head::of(&head)
    }

    fn stated(source: &mut Source<'_>) -> Result<(Plan, u32), LoadError> {
        let [encoding, base_bits, doublings, level] = source.take()?;
        let buckets = u64::from_le_bytes(source.take()?);
        source.header_seal()?;
        let encoding = wanted_of_number(encoding).ok_or(LoadError::UnknownEncoding { encoding })?;
        let plan = Plan::stated(buckets, base_bits.into(), doublings.into(), encoding);
        let plan = plan.filter(|plan| u32::from(level) <= plan.doublings);
        let plan = plan.ok_or(LoadError::InvalidLevels { buckets, base_bits, doublings, level })?;
        let level = level.into();
        source.known_header(plan.shape(level), plan.buckets(level))?;
        Ok((plan, level))
    }

    fn plan((plan, level): &(Plan, u32)) -> FilterPlan {
        Self::filter_plan(plan, *level)
    }

    fn empty((plan, level): (Plan, u32), memory_limit: usize, memory_of_caller: usize) -> Result<Self, LoadError> {
        let plan = Plan { memory_limit, memory_of_caller, ..plan };
        let bytes = Self::memory_at(&plan, level);
        Self::at_level(plan, level).map_err(|_| LoadError::OutOfMemory { bytes })
    }
}
