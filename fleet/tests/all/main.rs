//! Tests of the fleet with real clusters of etcd, whose members, disks and network fail. `ci/fleet` runs them.

mod deletions;
mod faults;
mod load;
mod login;
mod nodes;
mod operations;
mod program;
mod restores;
mod storm;
mod support;
