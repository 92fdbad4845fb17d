//! Log files as a receiver uses them, on real directories.

mod follower;
mod kubelet;
mod limits;
mod plain;
mod restarts;
