// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/tls.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

namespace wavejit::remote {

namespace {

// Where distributions keep the authorities that the machine trusts; the first that is there.
constexpr std::array<const char*, 4> system_authorities = {"/etc/ssl/certs/ca-certificates.crt",
                                                           "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                                           "/etc/ssl/cert.pem"};

std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "no reason given";
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

}  // namespace

void Trust::FreeLibrary::operator()(ossl_lib_ctx_st* library) const { OSSL_LIB_CTX_free(library); }
void Trust::FreeContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void Tls::Free::operator()(ssl_st* connection) const { SSL_free(connection); }

std::expected<std::shared_ptr<const Trust>, std::string> Trust::of(const std::string& authorities) {
  // The host's configuration file may name providers and engines; none of them is loaded into this copy.
  if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1)
    return std::unexpected("libssl does not start: " + last_reason());
  std::string file = authorities;
  for (const char* one : system_authorities)
    if (file.empty() && ::access(one, R_OK) == 0) file = one;
  if (file.empty())
    return std::unexpected("this system has no file of certificate authorities where one is looked for");
  auto trust = std::make_shared<Trust>();
  trust->library_.reset(OSSL_LIB_CTX_new());
  trust->context_.reset(SSL_CTX_new_ex(trust->library_.get(), nullptr, TLS_client_method()));
  SSL_CTX* context = trust->context_.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
    return std::unexpected("libssl makes no context: " + last_reason());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1)
    return std::unexpected(file + " holds no certificate authorities: " + last_reason());
  return trust;
}

Result<Tls> Tls::to(const Trust& trust, const std::string& host, const std::string& where) {
  ERR_clear_error();
  std::unique_ptr<ssl_st, Free> connection(SSL_new(trust.context_.get()));
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (connection == nullptr || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return fault("out of memory for TLS to " + where);
  }
  SSL_set_bio(connection.get(), in, out);  // which owns them
  const bool named = is_address(host)
                         ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(connection.get()), host.c_str()) == 1
                         : SSL_set1_host(connection.get(), host.c_str()) == 1 &&
                               SSL_set_tlsext_host_name(connection.get(), host.c_str()) == 1;
  if (!named) return fault("TLS to " + where + ": no certificate could have the host's name");
  SSL_set_connect_state(connection.get());
  return Tls(std::move(connection), where);
}

std::unexpected<Failure> Tls::failure(const char* doing) const {
  const long verdict = SSL_get_verify_result(connection_.get());
  const std::string why = verdict != X509_V_OK
                              ? std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verdict)
                              : last_reason();
  return fault(std::string(doing) + " " + where_ + ": " + why);
}

Result<bool> Tls::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(connection_.get());
  if (done == 1) return true;
  if (SSL_get_error(connection_.get(), done) == SSL_ERROR_WANT_READ) return false;
  return failure("no TLS with");
}

Result<void> Tls::write(std::span<const char> bytes) {
  while (!bytes.empty()) {
    ERR_clear_error();
    std::size_t taken = 0;
    // Memory takes whatever it is given.
    if (SSL_write_ex(connection_.get(), bytes.data(), bytes.size(), &taken) != 1) return failure("sending by TLS to");
    bytes = bytes.subspan(taken);
  }
  return {};
}

Result<std::optional<std::size_t>> Tls::read(std::span<char> bytes) {
  ERR_clear_error();
  std::size_t count = 0;
  const int done = SSL_read_ex(connection_.get(), bytes.data(), bytes.size(), &count);
  if (done == 1) return count;
  switch (SSL_get_error(connection_.get(), done)) {
    case SSL_ERROR_WANT_READ:
      return std::nullopt;
    case SSL_ERROR_ZERO_RETURN:
      return std::size_t{0};
    default:
      return failure("reading by TLS from");
  }
}

std::vector<char> Tls::outgoing() {
  BIO* out = SSL_get_wbio(connection_.get());
  std::vector<char> bytes(BIO_ctrl_pending(out));
  std::size_t count = 0;
  if (!bytes.empty() && BIO_read_ex(out, bytes.data(), bytes.size(), &count) != 1) count = 0;
  bytes.resize(count);
  return bytes;
}

Result<void> Tls::incoming(std::span<const char> bytes) {
  std::size_t taken = 0;
  if (BIO_write_ex(SSL_get_rbio(connection_.get()), bytes.data(), bytes.size(), &taken) == 1 && taken == bytes.size())
    return {};
  return fault("out of memory for what " + where_ + " sends");
}

}  // namespace wavejit::remote
