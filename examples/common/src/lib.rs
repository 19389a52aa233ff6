//! What several examples need besides the filter.
//!
//! - [`option_values`]: parsers for the values of options;
//! - [`machine`]: the number of hardware threads;
//! - [`secret_file`]: files that hold a secret.
//!
//! It depends only on the standard library. So the dependencies of an example are those that the example itself
//! needs.

pub mod machine;
pub mod option_values;
pub mod secret_file;
