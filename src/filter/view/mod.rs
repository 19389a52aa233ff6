//! PURE: lookups in the bytes of a snapshot, which is not loaded.
//!
//! A snapshot has everything that a lookup needs: a header, and the words of the table in order. `View::new` reads the
//! header as loading does, by the same code (`snapshot/source.rs`), and so rejects what loading rejects, except what
//! only a scan of the words shows. From then on the header is not read again. A lookup is that of a table (`lookup`), with
//! another source: the words are where they are in the bytes (`words.rs`), and there are no versions to compare, because
//! nothing changes.
//!
//! **Bytes that change or are forged.** No word is trusted. A number of a bucket is below the number of words by
//! construction, and each read checks that again. Any 64 bits mean something to the arithmetic, as `word/bucket.rs` has it: a
//! word that no filter writes gives wrong answers, but no panic and no access outside the bytes.
//!
//! `view.rs` has the public type, `viewed.rs` what differs between filters, `fixed.rs` and `growing.rs` the tables.

mod fixed;
mod growing;
#[allow(clippy::module_inception, reason = "the folder is about views, and the file has the type")]
pub(crate) mod view;
pub(crate) mod viewed;
mod words;
