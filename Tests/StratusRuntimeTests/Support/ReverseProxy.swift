import ChildProcesses
import Foundation
import Testing

@testable import StratusRuntime

/// A proxy of Debian's in front of a server of ours, and what it says it passed on.
final class ReverseProxy: Sendable {
    enum Kind: String, Sendable, CaseIterable, CustomTestStringConvertible {
        /// Reads a body whole before it passes it on, with a length.
        case nginx
        /// Passes a body on as it comes, chunks as chunks.
        case nginxStreaming
        case haproxy

        var program: String { self == .haproxy ? "/usr/sbin/haproxy" : "/usr/sbin/nginx" }
        var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: self.program) }
        var testDescription: String { self.rawValue }
    }

    /// One request as the proxy understood it.
    struct Passed: Sendable, Equatable {
        var method: String
        var target: String
        /// The status of the server's answer; nil if the proxy answered itself.
        var status: Int?
    }

    let kind: Kind
    let address: SocketAddress
    private let directory: String
    private let process: ChildProcess
    private var logPath: String { "\(self.directory)/access.log" }

    /// - Parameter port: of the server behind it.
    init(_ kind: Kind, before port: UInt16) async throws {
        self.kind = kind
        let directory = makeTemporaryDirectory()
        self.directory = directory
        let socket = "\(directory)/proxy.sock"
        self.address = .unix(path: socket)
        let file = "\(directory)/proxy.conf"
        let text =
            kind == .haproxy
            ? Self.haproxy(socket, port)
            : Self.nginx(directory, socket, port, isBuffering: kind == .nginx)
        try Data(text.utf8).write(to: URL(filePath: file))
        self.process = try ChildProcess(
            kind.program,
            kind == .haproxy ? ["-db", "-f", file] : ["-p", directory, "-c", file],
            input: .leash)
        // The socket's file is there before anybody listens to it.
        try await eventually { (try? RawClient(self.address)) != nil || !self.process.isRunning }
    }

    /// A connection, or what became of the proxy.
    func client() throws -> RawClient {
        do {
            return try RawClient(self.address)
        } catch {
            let log = "\(self.directory)/error.log"
            throw Unreachable(
                cause: error, isRunning: self.process.isRunning,
                said: self.process.errors
                    + ((try? String(contentsOfFile: log, encoding: .utf8)) ?? ""))
        }
    }

    struct Unreachable: Error {
        var cause: any Error
        var isRunning: Bool
        var said: String
    }

    deinit {
        self.process.signal(SIGKILL)
        removeDirectory(self.directory)
    }

    /// Every request so far that was answered, in the order of the answers.
    func passed() throws -> [Passed] {
        let text =
            self.kind == .haproxy
            ? self.process.output
            : try String(decoding: Data(contentsOf: URL(filePath: self.logPath)), as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            guard line.hasPrefix("passed\t") else { return nil }
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard parts.count == 4 else { return nil }
            // After a connection of its pool turned out to be closed: `502, 200`.
            let last = parts[3].split(separator: " ").last ?? ""
            let status =
                last.contains(":")
                ? (last.hasPrefix("behind:") ? Int(last.dropFirst("behind:".count)) : nil)
                : Int(last)
            return Passed(method: String(parts[1]), target: String(parts[2]), status: status)
        }
    }

    private static func nginx(
        _ directory: String, _ socket: String, _ port: UInt16, isBuffering: Bool
    ) -> String {
        """
        daemon off;
        master_process off;
        error_log \(directory)/error.log;
        pid \(directory)/pid;
        events { worker_connections 128; }
        http {
            client_body_temp_path \(directory)/bodies;
            proxy_temp_path \(directory)/proxied;
            fastcgi_temp_path \(directory)/fastcgi;
            uwsgi_temp_path \(directory)/uwsgi;
            scgi_temp_path \(directory)/scgi;
            log_format passed "passed\\t$request_method\\t$request_uri\\t$upstream_status";
            access_log \(directory)/access.log passed;
            client_max_body_size 64m;
            client_header_timeout 2s;
            client_body_timeout 2s;
            keepalive_requests 100000;
            upstream behind { server 127.0.0.1:\(port); keepalive 1; }
            server {
                listen unix:\(socket);
                location / {
                    proxy_pass http://behind;
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_ignore_client_abort on;
                    proxy_request_buffering \(isBuffering ? "on" : "off");
                }
            }
        }

        """
    }

    private static func haproxy(_ socket: String, _ port: UInt16) -> String {
        // `%s` is `<NOSRV>` where the proxy answered itself.
        """
        global
            maxconn 128
        defaults
            mode http
            timeout connect 2s
            timeout client 2s
            timeout http-request 2s
            timeout server 5s
        frontend front
            bind unix@\(socket)
            log stdout format raw local0
            log-format "passed\\t%HM\\t%HU\\t%s:%ST"
            default_backend behind
        backend behind
            http-reuse always
            server behind 127.0.0.1:\(port) pool-max-conn 1

        """
    }
}
