//! What a batch takes as a key.

use core::borrow::Borrow;

/// A key type that batch methods accept: a reference to any type that single operations take by reference.
///
/// It is implemented for `&Q` if a filter of `T` can be asked for a `Q`: for a filter of `String`, that is `&String`
/// and `&str`; for a filter of `str`, `&str`. There is nothing to implement. The compiler names this trait only if a batch
/// was given something else:
///
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// let blocked = ConcurrentCuckooFilter::<str>::with_capacity(1000);
/// let names = vec!["mailinator.com".to_owned()];
/// blocked.insert_batch(&names)?; // `&String`, where `&str` is asked for
/// # Ok::<(), concurrent_cuckoo_filter::InsertBatchError>(())
/// ```
///
/// These forms work:
///
/// ```
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// let blocked = ConcurrentCuckooFilter::<str>::with_capacity(1000);
/// let names = vec!["mailinator.com".to_owned()];
/// blocked.insert_batch(names.iter().map(String::as_str))?;
///
/// // Pairs, for a maplet or with an expiry:
/// # use concurrent_cuckoo_filter::CuckooMaplet;
/// # let shards = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build().unwrap();
/// let pairs = vec![("mailinator.com".to_owned(), 7)];
/// shards.insert_batch(pairs.iter().map(|(key, value)| (key.as_str(), *value)))?;
///
/// // A list of references has references to them.
/// let names = vec!["trashmail.com", "0-mail.com"];
/// blocked.insert_batch(names.iter().copied())?;
///
/// // Owned keys are borrowed.
/// let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// numbers.insert_batch(&vec![1, 2, 3])?;
///
/// // Keys that the iterator generates cannot be borrowed from it. Pass their hashes.
/// let made = (0..100).map(|number| format!("{number}-mail.com"));
/// blocked.by_hash().insert_batch(made.map(|name| blocked.hash_one(name.as_str())))?;
/// numbers.by_hash().insert_batch((10..20).map(|number| numbers.hash_one(&number)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// Where rustc itself suggests to borrow, as for numbers, it shows the message and leaves out label and notes.
#[diagnostic::on_unimplemented(
    message = "a batch takes references (`&{T}`), and not `{Self}`: pass `keys.iter()`, or hashes to `by_hash()`",
    label = "these keys are of type `{Self}`",
    note = "of `String`s, for `str`: `keys.iter().map(String::as_str)`",
    note = "of a list of references: `keys.iter().copied()`",
    note = "of pairs: `pairs.iter().map(|(key, other)| (key.as_str(), *other))`",
    note = "of keys that the iterator makes: `filter.by_hash()` has the same batch for the hashes \
            `keys.map(|key| filter.hash_one(&key))`"
)]
pub trait BatchKey<T: ?Sized>: Sealed {}

impl<Q: ?Sized> Sealed for &Q {}

#[diagnostic::do_not_recommend]
impl<T, Q> BatchKey<T> for &Q
where
    T: Borrow<Q> + ?Sized,
    Q: ?Sized,
{
}

/// A supertrait that no other crate can name. It keeps other crates from implementing a public trait, so that later
/// versions can add methods to it.
#[allow(unreachable_pub, reason = "public traits have it as a supertrait")]
pub trait Sealed {}
