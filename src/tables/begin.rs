//! CONCURRENT: saves of several tables that begin so that their images belong together. `snapshot/format.rs` has the
//! reasoning.

use std::io;

use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::face::traits::AnyTable;
use crate::table::image::images::{Imaged, Images, Rotation};
use crate::tables::generations::Generations;
use crate::tables::growth::Tables;

impl Imaged for Tables {
    /// The newest first.
    fn begin_save(&self) -> io::Result<Images<'_>> {
        let tables = self.tables();
        let turned = fault::injected(Fault::SaveOldestFirst);
        let mut images = Images::new(
            (0..tables).map(|nth| self.table(if turned { nth } else { tables - 1 - nth }) as &dyn AnyTable),
        )?;
        if turned {
            images.tables.reverse();
        }
        Ok(images)
    }
}

impl Imaged for Generations {
    /// From the oldest live generation to the current one.
    fn begin_save(&self) -> io::Result<Images<'_>> {
        // No rotation takes effect until the moments of all tables are past. A tick is stored after the rotations
        // that it causes.
        let _rotation = self.rotation.lock();
        let (now, next_tick) = (self.now(), self.next_tick.load(Ordering::Relaxed));
        let ring = self.tables.len();
        let ages = (0..self.live_generations()).rev();
        let images = Images::new(ages.map(|age| &*self.tables[(now.table() + ring - age) % ring] as &dyn AnyTable))?;
        Ok(Images { rotation: Some(Rotation { generation: now.generation(), next_tick }), ..images })
    }
}
