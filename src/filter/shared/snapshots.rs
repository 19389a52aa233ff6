//! Saving and loading, for all types of filter.

use core::hash::BuildHasher;
use std::borrow::Cow;
use std::sync::Arc;

use crate::error::load::LoadError;
use crate::error::memory::OutOfMemory;
use crate::filter::shared::parts::Parts;
use crate::hasher::probe::probe;
use crate::snapshot::format::SnapshotCore;
use crate::snapshot::save::Save;
use crate::snapshot::schema::Schema;
use crate::snapshot::source::{Metadata, SnapshotSource};
use crate::table::image::read::{HasImageSource, TableImage};

impl<C: SnapshotCore, S: BuildHasher> Parts<C, S> {
    /// Begins a save of a filter of keys of type `T`, whose parts these are.
    pub(in crate::filter) fn begin_save<T: ?Sized>(&self) -> Result<Save<'_>, OutOfMemory> {
        Ok(self.save_of(self.schema.name::<T>(), TableImage::begin(self.core.image_source())?))
    }

    /// [`begin_save`](Self::begin_save) of the filter itself, which the save keeps alive.
    pub(in crate::filter) fn begin_save_owned<'a, T: ?Sized>(
        &self,
        filter: Arc<dyn HasImageSource + 'a>,
    ) -> Result<Save<'a>, OutOfMemory> {
        let name = self.schema.name::<T>();
        let mut schema = String::new();
        schema.try_reserve_exact(name.len()).map_err(|_| OutOfMemory::new())?;
        schema.push_str(&name);
        Ok(self.save_of(schema.into(), TableImage::begin_shared(filter)?))
    }

    fn save_of<'a>(&self, schema: Cow<'a, str>, image: TableImage<'a>) -> Save<'a> {
        Save::new(C::KIND, probe(&self.hasher), schema, self.core.kind_header(&image), image)
    }

    /// Reads the parts of a filter of keys of type `T`, whose value takes `memory_of_filter` bytes, and the caller's metadata.
    pub(in crate::filter) fn load<T: ?Sized>(
        mut source: SnapshotSource<'_>,
        hasher: S,
        schema: Schema,
        memory_of_filter: usize,
    ) -> Result<(Self, Metadata), LoadError> {
        let metadata = source.header(C::KIND, &schema.name::<T>(), probe(&hasher))?;
        let core = C::load(&mut source, memory_of_filter)?;
        source.end()?;
        Ok((Self { core, hasher, schema }, metadata))
    }
}
