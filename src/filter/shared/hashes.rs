//! The batches of hashes of the filters of keys alone, written once.

/// `$prepared` turns a hash into what the core takes.
macro_rules! batches_on_hashes {
    ($Filter:ident, $Error:ident, $prepared:expr) => {
        #[allow(clippy::missing_errors_doc, reason = "they are those of the operation on a key")]
        impl<T: ?Sized, S> ByHash<'_, $Filter<T, S>> {
            #[doc = concat!("[`contains_batch`](", stringify!($Filter), "::contains_batch) by hashes.")]
            pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
                let hashes = hashes.into_iter().map(|hash| $prepared(hash.0));
                self.0.core.contains_batch(&mut blocks(hashes), &mut |answers| found.extend_from_slice(answers));
            }

            #[doc = concat!("[`insert_batch`](", stringify!($Filter), "::insert_batch) by hashes, with its errors.")]
            pub fn insert_batch(
                self,
                hashes: impl IntoIterator<Item = Hashed>,
            ) -> Result<(), InsertBatchError<$Error>> {
                let hashes = hashes.into_iter().map(|hash| $prepared(hash.0));
                self.0.core.insert_batch(&mut blocks(hashes)).map(drop)
            }

            #[doc = concat!("[`insert_if_absent_batch`](", stringify!($Filter), "::insert_if_absent_batch) by hashes, with its errors.")]
            pub fn insert_if_absent_batch(
                self,
                hashes: impl IntoIterator<Item = Hashed>,
                added: &mut Vec<bool>,
            ) -> Result<usize, InsertBatchError<$Error>> {
                let core = &self.0.core;
                let hashes = hashes.into_iter().map(|hash| ($prepared(hash.0), ()));
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
                let hashes = hashes.into_iter().map(|hash| $prepared(hash.0));
                self.0.core.remove_batch(&mut blocks(hashes), &mut |answers| removed.extend_from_slice(answers));
            }
        }
    };
}
pub(in crate::filter) use batches_on_hashes;
