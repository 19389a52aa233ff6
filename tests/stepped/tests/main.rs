//! The filter step by step: `../README.md` says what is here. It is one program, because most of the time to build it goes
//! into the table, for each of a few layouts, which all of these need.

mod common;
mod counts;
mod frozen;
mod histories;
mod interrupted;
mod limiter;
mod recent;
mod schedules;
mod values;
