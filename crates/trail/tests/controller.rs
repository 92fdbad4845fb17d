//! Controllers against a real API server: every span, its parent and its links.

mod support {
    pub mod cluster;
    pub mod edges;
    pub mod head;
}

#[path = "controller/stories.rs"]
mod stories;
