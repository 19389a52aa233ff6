//! The guide: one page for each question that comes up between the first example and production.
//!
//! | page | what it answers |
//! |---|---|
//! | [`choosing_parameters`] | Which type, which capacity, which rate, which layout? |
//! | [`growth`] | How does a growable filter grow and shrink, and what does it take? |
//! | [`consistency`] | What may a thread rely on while others change the filter? What does each operation cost? |
//! | [`in_front_of_a_database`] | In which order do writes go to the database and the filter? Who may remove? How is it rebuilt? |
//! | [`several_places`] | How is a maplet kept right while keys move between segments, shards or nodes? |
//! | [`beyond_one_process`] | Snapshots, merging, one set on many machines. |
//! | [`expiry`] | How do keys expire, one by one or all of a period? |
//! | [`threads_and_async`] | How is a filter shared, and which calls belong on a blocking thread? |
//! | [`security`] | What can an adversary do who chooses keys, knows the hasher or sees the answers? |
//! | [`verification`] | What is promised, what shows it, and what is not shown? |
//! | [`scaling`] | What does an operation touch, and what follows for many cores? |
//! | [`faq`] | Questions that users of filters ask. |
//! | [`glossary`] | What do the terms mean? |

#[doc = include_str!("choosing_parameters.md")]
pub mod choosing_parameters {}

#[doc = include_str!("growth.md")]
pub mod growth {}

#[doc = include_str!("consistency.md")]
pub mod consistency {}

#[doc = include_str!("in_front_of_a_database.md")]
pub mod in_front_of_a_database {}

#[doc = include_str!("several_places.md")]
pub mod several_places {}

#[doc = include_str!("beyond_one_process.md")]
pub mod beyond_one_process {}

#[doc = include_str!("expiry.md")]
pub mod expiry {}

#[doc = include_str!("threads_and_async.md")]
pub mod threads_and_async {}

#[doc = include_str!("security.md")]
pub mod security {}

#[doc = include_str!("verification.md")]
pub mod verification {}

#[doc = include_str!("scaling.md")]
pub mod scaling {}

#[doc = include_str!("faq.md")]
pub mod faq {}

#[doc = include_str!("glossary.md")]
pub mod glossary {}
