//! One set of revoked tokens on many servers. All of it is in the library beside this, so that the tests have it too.

use std::process::ExitCode;

fn main() -> ExitCode {
    fleet::main()
}
