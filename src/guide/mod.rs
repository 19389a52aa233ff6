//! The guide: one page for each question that comes up between the first example and production.
//!
//! | page | what it answers |
//! |---|---|
//! | [`choosing_parameters`] | Which type, which capacity, which rate, which hasher? |
//! | [`migrating`] | What changes in code that uses another filter, a cache or Redis? |
//! | [`adopters`] | What would change for four projects that refuse what comes twice, and where would it not pay? |
//! | [`growth`] | How does a growable filter grow and shrink, and what does that cost? |
//! | [`expiry`] | How do keys expire, and who tells the filter the time? |
//! | [`in_front_of_a_database`] | In which order do writes go to the database and the filter? Who may remove? How is it rebuilt? |
//! | [`several_places`] | How is a maplet kept right while keys move between segments, shards or nodes? |
//! | [`beyond_one_process`] | Snapshots, merging, one set on many machines. |
//! | [`threads_and_async`] | How is a filter shared, and which calls belong on a blocking thread? |
//! | [`consistency`] | What may a thread rely on while others change the filter? What does each operation cost? |
//! | [`security`] | What can an adversary do who chooses keys, knows the hasher or sees the answers? |
//! | [`scaling`] | What to expect of many threads, and how long can one call take? |
//! | [`verification`] | What is promised, what shows it, and what is not shown? |
//! | [`faq`] | Questions that no other page answers: a wrong rate, large counts, mocks. |
//! | [`glossary`] | The terms of the table. |

#[doc = include_str!("choosing_parameters.md")]
pub mod choosing_parameters {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = include_str!("adopters.md")]
pub mod adopters {}

#[doc = include_str!("growth.md")]
pub mod growth {}

#[doc = include_str!("expiry.md")]
pub mod expiry {}

#[doc = include_str!("in_front_of_a_database.md")]
pub mod in_front_of_a_database {}

#[doc = include_str!("several_places.md")]
pub mod several_places {}

#[doc = include_str!("beyond_one_process.md")]
pub mod beyond_one_process {}

#[doc = include_str!("threads_and_async.md")]
pub mod threads_and_async {}

#[doc = include_str!("consistency.md")]
pub mod consistency {}

#[doc = include_str!("security.md")]
pub mod security {}

#[doc = include_str!("scaling.md")]
pub mod scaling {}

#[doc = include_str!("verification.md")]
pub mod verification {}

#[doc = include_str!("faq.md")]
pub mod faq {}

#[doc = include_str!("glossary.md")]
pub mod glossary {}
