//! Log files as a receiver uses them, on real directories.

mod adversary;
mod follower;
mod kubelet;
mod limits;
mod plain;
mod race;
mod restarts;
mod written_logs;

/// A receiver may open log files on one thread and read them on another.
#[test]
fn log_files_can_be_sent_to_another_thread() {
    fn require_send<T: Send>() {}
    require_send::<crate::LogFiles>();
    require_send::<crate::LogFilesHandle>();
}
