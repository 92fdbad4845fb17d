//! An example of trail: scheduler.
