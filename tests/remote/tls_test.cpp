// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// rediss://: the real server in TLS, and servers that only seem to be the one that was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>

#include "remote/store.h"
#include "test_servers.h"

namespace wavejit::remote {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using tests::JunkServer;
using tests::RedisServer;
using tests::ScratchDirectory;
using Bytes = std::vector<unsigned char>;

template <auto free>
struct With {
  void operator()(auto* one) const { free(one); }
};
using Key = std::unique_ptr<EVP_PKEY, With<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, With<X509_free>>;

// An authority and certificates by it, as a fleet's operator makes them.
class Authority {
 public:
  Authority() : key_(EVP_EC_gen("P-256")) {
    certificate_ = sign("authority", "", key_.get(), -1h, 24h);
    write_certificate(file(), certificate_.get());
  }

  std::string file() const { return folder_ / "authority.pem"; }
  // The server's settings for a certificate of `names` ("IP:127.0.0.1").
  std::vector<std::string> server(const std::string& names, std::chrono::hours until = 24h) {
    const Key key(EVP_EC_gen("P-256"));
    write_certificate(folder_ / "server.pem", sign("server", names, key.get(), -48h, until).get());
    std::FILE* file = std::fopen((folder_ / "server.key").c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    return {"--tls-cert-file",    folder_ / "server.pem", "--tls-key-file",     folder_ / "server.key",
            "--tls-ca-cert-file", this->file(),           "--tls-auth-clients", "no"};
  }

 private:
  static void write_certificate(const std::string& path, X509* certificate) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }

  Certificate sign(const char* common_name, const std::string& names, EVP_PKEY* key, std::chrono::hours from,
                   std::chrono::hours until) {
    Certificate made(X509_new());
    X509* certificate = made.get();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate), std::chrono::seconds(from).count());
    X509_gmtime_adj(X509_getm_notAfter(certificate), std::chrono::seconds(until).count());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(common_name), -1, -1, 0);
    X509* issuer = certificate_ ? certificate_.get() : certificate;
    X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
    X509_set_pubkey(certificate, key);
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const auto add = [&](int what, const char* value) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value);
      X509_add_ext(certificate, extension, -1);
      X509_EXTENSION_free(extension);
    };
    add(NID_basic_constraints, certificate_ ? "CA:FALSE" : "critical,CA:TRUE");
    if (!names.empty()) add(NID_subject_alt_name, names.c_str());
    X509_sign(certificate, key_.get(), EVP_sha256());
    return made;
  }

  ScratchDirectory folder_;
  long serial_ = 0;
  Key key_;
  Certificate certificate_;
};

// Its TLS port is beside its plain one.
class TlsServer {
 public:
  explicit TlsServer(std::vector<std::string> settings) {
    const auto [socket, port] = tests::listening_socket(1);
    ::close(socket);
    port_ = port;
    settings.insert(settings.end(), {"--tls-port", std::to_string(port)});
    server_ = std::make_unique<RedisServer>(std::move(settings));
    for (int i = 0; i < 1000 && !tests::can_connect(port_); ++i) std::this_thread::sleep_for(10ms);
  }
  int port() const { return port_; }
  int plain_port() const { return server_->port(); }

 private:
  int port_ = 0;
  std::unique_ptr<RedisServer> server_;
};

Store store_at(int port, const std::string& authorities, const std::string& host = "127.0.0.1",
               std::optional<std::string> password = {}, std::chrono::milliseconds patience = 20s) {
  Server server;
  server.host = host;
  server.port = port;
  server.connect_timeout = server.answer_timeout = patience;
  server.max_entry_bytes = 1 << 20;
  server.password = std::move(password);
  auto trust = Trust::of(authorities);
  if (!trust) throw std::runtime_error(trust.error());
  server.trust = *trust;
  return {std::move(server), *Seal::make(Bytes(32, 1))};
}

std::string refusal_of(Store store) {
  const auto answer = store.ask();
  return answer ? std::string("it answered") : answer.error().what;
}

Name name_of(unsigned char number) {
  Name name{.digest = {}, .target_id = "gfx950", .entry_format = 1};
  name.digest.fill(number);
  return name;
}

TEST(TlsTest, EntriesTravelAndAreListed) {
  Authority authority;
  std::vector<std::string> settings = authority.server("IP:127.0.0.1");
  settings.insert(settings.end(), {"--requirepass", "secret"});
  const TlsServer server(std::move(settings));
  Store store = store_at(server.port(), authority.file(), "127.0.0.1", "secret");
  ASSERT_TRUE(store.ask());
  // Smaller than a record of TLS, and many records.
  for (const std::size_t size : {std::size_t{1}, std::size_t{16384}, std::size_t{1'000'000}}) {
    Bytes entry(size);
    for (std::size_t i = 0; i < size; ++i) entry[i] = static_cast<unsigned char>(i * 31 >> 3);
    const auto kept = store.keep(name_of(2), entry);
    ASSERT_TRUE(kept) << kept.error().what;
    const auto fetched = store.fetch(name_of(2));
    ASSERT_TRUE(fetched) << fetched.error().what;
    EXPECT_EQ(*fetched, entry);
  }
  EXPECT_EQ(store.fetch(name_of(3)).error().status, WAVEJIT_REMOTE_ABSENT);
  int names = 0;
  ASSERT_TRUE(store.list(1, [&](const Name&) { return ++names, true; }));
  EXPECT_EQ(names, 1);
}

TEST(TlsTest, OnlyTheServerThatWasAskedForIsBelieved) {
  Authority authority;
  Authority somebody;
  const TlsServer server(authority.server("IP:127.0.0.1"));
  EXPECT_EQ(refusal_of(store_at(server.port(), authority.file())), "it answered");
  EXPECT_THAT(refusal_of(store_at(server.port(), somebody.file())), HasSubstr("its certificate is not trusted"));
  EXPECT_THAT(refusal_of(store_at(server.port(), authority.file(), "localhost")),
              HasSubstr("its certificate is not trusted: hostname mismatch"));
  const TlsServer named(authority.server("DNS:localhost"));
  EXPECT_EQ(refusal_of(store_at(named.port(), authority.file(), "localhost")), "it answered");
  EXPECT_THAT(refusal_of(store_at(named.port(), authority.file())), HasSubstr("IP address mismatch"));
  const TlsServer old(authority.server("IP:127.0.0.1", -24h));
  EXPECT_THAT(refusal_of(store_at(old.port(), authority.file())), HasSubstr("certificate has expired"));
}

TEST(TlsTest, WithoutTlsOnTheOtherSideNothingIsSaidInClear) {
  Authority authority;
  const TlsServer server(authority.server("IP:127.0.0.1"));
  EXPECT_THAT(refusal_of(store_at(server.plain_port(), authority.file(), "127.0.0.1", "secret", 500ms)),
              HasSubstr("127.0.0.1"));
  // What such a server hears is no Redis command and no password.
  std::string heard;
  std::mutex mutex;
  {
    JunkServer plain([&](int socket) {
      char block[4096];
      const ssize_t count = ::recv(socket, block, sizeof block, 0);
      const std::scoped_lock lock(mutex);
      if (count > 0) heard.append(block, static_cast<std::size_t>(count));
      JunkServer::say(socket, "-ERR what is that\r\n");
    });
    EXPECT_THAT(refusal_of(store_at(plain.port(), authority.file(), "127.0.0.1", "secret")), HasSubstr("no TLS with"));
  }
  EXPECT_FALSE(heard.empty());
  EXPECT_EQ(heard.find("secret"), std::string::npos);
  EXPECT_EQ(heard.find("AUTH"), std::string::npos);
}

TEST(TlsTest, AServerThatIsSilentInTheMiddleIsAFaultInTime) {
  Authority authority;
  JunkServer silent(JunkServer::silent());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(refusal_of(store_at(silent.port(), authority.file(), "127.0.0.1", {}, 300ms)), HasSubstr("300"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  JunkServer closing([](int) {});
  EXPECT_THAT(refusal_of(store_at(closing.port(), authority.file())),
              ::testing::AnyOf(HasSubstr("closed"), HasSubstr("reset")));
}

TEST(TlsTest, WithoutAuthoritiesThereIsNoTrust) {
  const ScratchDirectory folder;
  EXPECT_THAT(Trust::of(folder / "absent.pem").error(), HasSubstr("holds no certificate authorities"));
  std::ofstream(folder / "empty.pem") << "nothing\n";
  EXPECT_THAT(Trust::of(folder / "empty.pem").error(), HasSubstr("holds no certificate authorities"));
}

}  // namespace
}  // namespace wavejit::remote
