//! The default working directory of sandboxed and unsandboxed servers.

use outpost_client::{
    HostInfo, HttpRequest, HttpResponse, LocalExecutor, LocalOptions, Pending, Process,
    ProcessEntry,
};
use parking_lot::Mutex;

use super::*;

/// An executor that reports `cwd` as its working directory.
struct FakeCwd {
    inner: LocalExecutor,
    cwd: Option<&'static str>,
}

impl Executor for FakeCwd {
    fn start(&self, start: Start) -> Pending<'_, Process> {
        self.inner.start(start)
    }

    fn attach(&self, id: &str, after_seq: u64) -> Pending<'_, Process> {
        self.inner.attach(id, after_seq)
    }

    fn processes(&self) -> Pending<'_, Vec<ProcessEntry>> {
        self.inner.processes()
    }

    fn environment(&self) -> Pending<'_, HostInfo> {
        Box::pin(async {
            let environment = self.inner.environment().await?;
            Ok(HostInfo {
                cwd: self.cwd.map(|cwd| PathUri::from_path(Path::new(cwd))),
                ..environment
            })
        })
    }

    fn files(&self) -> Files {
        self.inner.files()
    }

    fn http(&self, request: HttpRequest) -> Pending<'_, HttpResponse> {
        self.inner.http(request)
    }

    fn close(&self) -> Pending<'_, ()> {
        self.inner.close()
    }
}

/// A provider whose executor can be replaced, as after a reconnect.
struct Replaceable(Mutex<Arc<dyn Executor>>);

impl Replaceable {
    fn with_cwd(cwd: Option<&'static str>) -> Arc<Self> {
        Arc::new(Replaceable(Mutex::new(executor(cwd))))
    }
}

impl ExecutorProvider for Replaceable {
    fn executor(&self) -> Pending<'_, Arc<dyn Executor>> {
        let executor = Arc::clone(&self.0.lock());
        Box::pin(async move { Ok(executor) })
    }
}

fn executor(cwd: Option<&'static str>) -> Arc<dyn Executor> {
    let inner = LocalExecutor::new(LocalOptions::default()).unwrap();
    Arc::new(FakeCwd { inner, cwd })
}

fn config(cwd: Option<&str>, sandboxed: bool) -> ToolServerConfig {
    let tool_sandbox = ToolSandbox {
        profile: ":workspace".to_owned(),
        sandbox: Sandbox::workspace("/"),
        network: None,
    };
    ToolServerConfig {
        cwd: cwd.map(str::to_owned),
        tool_sandbox: sandboxed.then_some(tool_sandbox),
        ..ToolServerConfig::default()
    }
}

#[tokio::test]
async fn sandboxed_server_needs_a_known_directory() {
    for (reported, configured, workspace) in [
        (None, None, None),
        (None, Some("sub"), None),
        (None, Some("/given"), Some("/given")),
        (Some("/reported"), None, Some("/reported")),
        (
            Some("/reported"),
            Some("sub/../other"),
            Some("/reported/other"),
        ),
    ] {
        let provider = Replaceable::with_cwd(reported);
        let sandboxed = ToolServer::new(Arc::clone(&provider) as _, config(configured, true)).await;
        let roots = match sandboxed {
            Ok(server) => Some(server.sandbox().unwrap().policy().workspace_roots.clone()),
            Err(Error::NoDirectory) => None,
            Err(other) => panic!("{other:?}"),
        };
        let workspace = workspace.map(|path| vec![PathBuf::from(path)]);
        assert_eq!(roots, workspace, "{reported:?} {configured:?}");
        let unsandboxed = ToolServer::new(provider, config(configured, false)).await;
        assert!(unsandboxed.is_ok_and(|server| server.sandbox().is_none()));
    }
}

#[tokio::test]
async fn reconnect_does_not_move_the_directory_of_a_sandboxed_server() {
    for (sandboxed, base) in [(true, "/before"), (false, "/")] {
        let provider = Replaceable::with_cwd(Some("/before"));
        let server = ToolServer::new(Arc::clone(&provider) as _, config(None, sandboxed)).await;
        let server = server.unwrap();
        *provider.0.lock() = executor(Some("/"));
        let info = server.executor().await.unwrap();
        assert_eq!(server.path(&info, None), Path::new(base));
        let roots = server
            .sandbox()
            .map(|sandbox| sandbox.policy().workspace_roots.clone());
        assert_eq!(roots, sandboxed.then(|| vec![PathBuf::from("/before")]));
    }
}

fn command(line: Option<&str>, argv: Option<&[&str]>) -> StartRequest {
    StartRequest {
        command: line.map(str::to_owned),
        argv: argv.map(|argv| argv.iter().map(|&arg| arg.to_owned()).collect()),
        ..StartRequest::default()
    }
}

#[test]
fn command_is_either_a_line_or_argv() {
    let argv = |line, argv| command(line, argv).argv("/bin/bash");
    let line = argv(Some("ls | wc"), None).unwrap();
    assert_eq!(line, ["/bin/bash", "-c", "ls | wc"]);
    let program = argv(None, Some(&["ls", "a b"])).unwrap();
    assert_eq!(program, ["ls", "a b"]);
    assert!(matches!(argv(None, None), Err(ToolError::NoCommand)));
    let empty = argv(None, Some(&[]));
    assert!(matches!(empty, Err(ToolError::EmptyArgv)));
    let both = argv(Some("ls"), Some(&["ls"]));
    assert!(matches!(both, Err(ToolError::TwoCommands)));
}

#[test]
fn summary_is_one_short_line() {
    let script = command(Some("cd x &&\n  make"), None);
    assert_eq!(script.summary(), "cd x && make");
    let long = command(Some(&"ä".repeat(1000)), None);
    assert_eq!(long.summary().chars().count(), SUMMARY_CHARS + 1);
}
