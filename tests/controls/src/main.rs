//! Lists the controls, and the tests in which each must be noticed.

use controls::table::CONTROLS;
use controls::{Control, tests_that_name};

fn main() {
    for Control { name, leaves_out, .. } in CONTROLS {
        println!("{name}: {leaves_out}");
        tests_that_name(name).iter().for_each(|file| println!("    {file}"));
    }
}
