//! Server configuration: settings, sources, precedence, validation.
//!
//! A new setting takes a field with a doc comment and a default in [`tables`], a line there in
//! `server_settings` or `limits`, which passes it on, and a row in `docs/configuration.md`. Its
//! key, variable, flag, and its lines in `config show` and `config/read` follow from the field.
//!
//! - [`tables`]: [`Config`], one struct per TOML table; serde reads and writes the values,
//!   clap takes the flags and their help from the doc comments
//! - [`settings`]: the list of settings, collected from the default [`Config`]; their values in
//!   each source, by precedence
//! - [`auth_settings`]: converts the settings of authentication
//! - [`secret_directories`]: directories that contain nothing but secret files of the server
//! - [`values`], [`sandbox_profiles`], [`network_policies`], [`principals`], [`hosts`]: value types and their syntax
//! - [`sources`]: reads flags, variables and files, each into a [`Layer`]
//! - [`show`]: output of `config show` and `config/read`
//! - [`files`]: locates and reads the configuration files

mod auth_settings;
mod files;
mod hosts;
mod memory_budget;
mod network_policies;
mod principals;
mod sandbox_profiles;
mod secret_directories;
mod settings;
mod show;
mod sources;
mod tables;
mod values;

pub(crate) use files::{ConfigFiles, load, load_config, read_file};
pub(crate) use hosts::{HostConfig, check_host_name, expand_home, split_host_path};
use settings::SETTINGS;
pub(crate) use settings::{Layer, Layers};
pub(crate) use show::{read_result, table};
pub(crate) use sources::SettingFlags;
pub(crate) use tables::Config;
pub(crate) use values::STDERR;
