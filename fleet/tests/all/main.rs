//! Tests of the fleet with real clusters of etcd, whose members, disks and network fail. `ci/fleet` runs them.

mod faults;
mod load;
mod losses;
mod nodes;
mod operations;
mod program;
mod storm;
mod support;
mod tls;
