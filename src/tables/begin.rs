//! CONCURRENT: saves of several tables that begin so that their images belong together. `snapshot/format.rs` has the
//! reasoning.

use std::io;

use crate::sync::fault::{self, Fault};
use crate::table::face::traits::AnyTable;
use crate::table::image::images::{Imaged, Images};
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
