//! Log files as a receiver uses them, on real directories.

mod adversary;
mod follower;
mod kubelet;
mod limits;
mod plain;
mod restarts;
mod written_logs;
