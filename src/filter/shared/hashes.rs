//! The operations on hashes of the filters of keys alone, written once. (`operations.rs` has those on keys.)

/// The filter has a function `prepared`, which turns a hash into what its core takes.
macro_rules! operations_on_hashes {
    ($Filter:ident, $Error:ident) => {
        impl<T: ?Sized, S> $Filter<T, S> {
            by_hash! {}
        }

        #[allow(clippy::missing_errors_doc, reason = "they are those of the operation on a key")]
        impl<T: ?Sized, S> ByHash<'_, $Filter<T, S>> {
            #[doc = concat!("[`insert`](", stringify!($Filter), "::insert) by hash, with its errors.")]
            #[inline]
            pub fn insert(self, hash: Hashed) -> Result<(), $Error> {
                self.0.core.insert($Filter::<T, S>::prepared(hash))
            }

            #[doc = concat!("[`insert_if_absent`](", stringify!($Filter), "::insert_if_absent) by hash, with its errors.")]
            #[inline]
            pub fn insert_if_absent(self, hash: Hashed) -> Result<bool, $Error> {
                self.0.core.insert_if_absent($Filter::<T, S>::prepared(hash))
            }

            #[doc = concat!("[`contains`](", stringify!($Filter), "::contains) by hash.")]
            #[inline]
            #[must_use]
            pub fn contains(self, hash: Hashed) -> bool {
                self.0.core.contains($Filter::<T, S>::prepared(hash))
            }

            #[doc = concat!("[`remove`](", stringify!($Filter), "::remove) by hash.")]
            #[inline]
            pub fn remove(self, hash: Hashed) -> bool {
                self.0.core.remove($Filter::<T, S>::prepared(hash))
            }

            #[doc = concat!("[`count`](", stringify!($Filter), "::count) by hash.")]
            #[inline]
            #[must_use]
            pub fn count(self, hash: Hashed) -> usize {
                self.0.core.count($Filter::<T, S>::prepared(hash))
            }

            #[doc = concat!("[`contains_batch`](", stringify!($Filter), "::contains_batch) by hashes.")]
            pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
                let hashes = hashes.into_iter().map($Filter::<T, S>::prepared);
                self.0.core.contains_batch(&mut blocks(hashes), &mut |answers| found.extend_from_slice(answers));
            }

            #[doc = concat!("[`insert_batch`](", stringify!($Filter), "::insert_batch) by hashes, with its errors.")]
            pub fn insert_batch(
                self,
                hashes: impl IntoIterator<Item = Hashed>,
            ) -> Result<(), InsertBatchError<$Error>> {
                let hashes = hashes.into_iter().map($Filter::<T, S>::prepared);
                self.0.core.insert_batch(&mut blocks(hashes)).map(drop)
            }

            #[doc = concat!("[`insert_if_absent_batch`](", stringify!($Filter), "::insert_if_absent_batch) by hashes, with its errors.")]
            pub fn insert_if_absent_batch(
                self,
                hashes: impl IntoIterator<Item = Hashed>,
                added: &mut Vec<bool>,
            ) -> Result<usize, InsertBatchError<$Error>> {
                let core = &self.0.core;
                let hashes = hashes.into_iter().map(|hash| ($Filter::<T, S>::prepared(hash), ()));
                add_absent(
                    hashes,
                    |hashes| core.prefetch(hashes),
                    |hash, ()| {
                        let is_new = core.insert_if_absent(hash)?;
                        added.push(is_new);
                        Ok(is_new)
                    },
                )
            }

            #[doc = concat!("[`remove_batch`](", stringify!($Filter), "::remove_batch) by hashes.")]
            pub fn remove_batch(self, hashes: impl IntoIterator<Item = Hashed>, removed: &mut Vec<bool>) {
                let hashes = hashes.into_iter().map($Filter::<T, S>::prepared);
                self.0.core.remove_batch(&mut blocks(hashes), &mut |answers| removed.extend_from_slice(answers));
            }
        }
    };
}
pub(in crate::filter) use operations_on_hashes;
