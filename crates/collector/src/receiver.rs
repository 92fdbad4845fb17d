//! receiver
