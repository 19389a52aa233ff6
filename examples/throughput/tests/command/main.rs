//! Runs the program as its users do: as a process, with arguments, files and pipes.
//!
//! - `process`: the runs and their results;
//! - `arguments`, `keys`, `report`, `plot`: what each of these promises.
#![cfg(not(miri))]

mod arguments;
mod keys;
mod plot;
mod process;
mod report;
